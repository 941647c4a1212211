{{/* The image of a role; the canary has that of routers. (list $ role) */}}
{{- define "trawl.image" -}}
{{- $ := index . 0 -}}{{- $role := eq (index . 1) "canary" | ternary "router" (index . 1) -}}
{{- $image := printf "%s%s:%s" $.Values.image.prefix $role (default $.Chart.AppVersion $.Values.image.tag) -}}
{{- with get $.Values.image.digests $role }}{{ $image = printf "%s@%s" $image . }}{{ end -}}
{{- include "trawl.registry" (list $ (default $image (get $.Values $role).image)) -}}
{{- end -}}

{{/* An image, from the registry of all charts if there is one. (list $ image) */}}
{{- define "trawl.registry" -}}
{{- $image := index . 1 -}}
{{- with (index . 0).Values.global.imageRegistry -}}
{{- $image = printf "%s/%s" . (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $image "") -}}
{{- end -}}
{{- $image -}}
{{- end -}}

{{/* The resources of a role; a cache on the node's disk is among its requests. (list $ role) */}}
{{- define "trawl.resources" -}}
{{- $values := get (index . 0).Values (index . 1) -}}
{{- $resources := deepCopy $values.resources -}}
{{- with $values.cache }}{{ if and (eq .type "emptyDir") (not (get $resources.requests "ephemeral-storage")) -}}
{{- $_ := set $resources.requests "ephemeral-storage" .size -}}
{{- end }}{{ end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* The number of pods. For a scaled workload it is the current number, since an upgrade
that no longer names a number would set it to one. (list $ role kind scaled) */}}
{{- define "trawl.replicas" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}
{{- if not (index . 3) -}}
replicas: {{ (get $.Values $role).replicas }}
{{- else -}}
{{- with (lookup "apps/v1" (index . 2) $.Release.Namespace (printf "%s-%s" (include "trawl.name" $) $role)).spec -}}
replicas: {{ .replicas }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The least number of pods of a scaled role. (list $ role) */}}
{{- define "trawl.minReplicas" -}}
{{- $values := get (index . 0).Values (index . 1) -}}
{{- kindIs "invalid" $values.autoscaling.minReplicas | ternary (max 1 $values.replicas) $values.autoscaling.minReplicas -}}
{{- end -}}

{{/* Metadata of a role's pods. A change of the settings makes new pods. (list $ role) */}}
{{- define "trawl.podMetadata" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}{{- $values := get $.Values $role -}}
labels:
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- include "trawl.podLabels" . | nindent 2 }}
annotations:
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  checksum/config: {{ include (printf "trawl.config.%s" $role) $ | sha256sum }}
{{- end -}}

{{/* The service account of a role. (list $ role) */}}
{{- define "trawl.serviceAccount" -}}
{{- $account := (get (index . 0).Values (index . 1)).serviceAccount -}}
{{- default ($account.create | ternary (printf "%s-%s" (include "trawl.name" (index . 0)) (index . 1)) "default") $account.name -}}
{{- end -}}

{{/* What the pods of all roles have in common. (list $ role) */}}
{{- define "trawl.podCommon" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}{{- $values := get $.Values $role -}}
serviceAccountName: {{ include "trawl.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with $values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  {{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
  {{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          {{- /* Pods that a rolling update removes do not count; otherwise the new ones would share a node. */}}
          matchLabelKeys: [pod-template-hash]
          labelSelector:
            matchLabels:
              {{- include "trawl.selector" . | nindent 14 }}
  {{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "trawl.selector" . | nindent 8 }}
securityContext:
  {{- toYaml $.Values.podSecurityContext | nindent 2 }}
{{- with $values.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What the containers of all roles have in common; mounts come last. (list $ role) */}}
{{- define "trawl.containerCommon" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}{{- $values := get $.Values $role -}}
{{- $scheme := include "trawl.scheme" . -}}{{- with $scheme }}{{ $scheme = printf ", scheme: %s" . }}{{ end -}}
image: {{ include "trawl.image" . | quote }}
imagePullPolicy: {{ $.Values.image.pullPolicy }}
args: {{ concat (list $role "--config" "/etc/trawl/config.yaml") $values.extraArgs | toJson }}
securityContext:
  {{- toYaml $.Values.containerSecurityContext | nindent 2 }}
{{- with $values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- include "trawl.resources" . | nindent 2 }}
{{/* Loading the data of an earlier run can take long. After that, a process that does not
answer for a minute is restarted, and one that is not ready gets no calls. */ -}}
startupProbe:
  httpGet: {path: /healthz, port: http{{ $scheme }}}
  {{- toYaml $values.probes.startup | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: http{{ $scheme }}}
  {{- toYaml $values.probes.readiness | nindent 2 }}
livenessProbe:
  httpGet: {path: /healthz, port: http{{ $scheme }}}
  {{- toYaml $values.probes.liveness | nindent 2 }}
{{- end -}}

{{/* An environment variable of a key of a Secret. (list name secret key) */}}
{{- define "trawl.secretEnv" -}}
- name: {{ index . 0 }}
  valueFrom: {secretKeyRef: {name: {{ index . 1 }}, key: {{ index . 2 }}}}
{{ end -}}

{{/* The environment beyond a role's own. (list $ role needs…) */}}
{{- define "trawl.env" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}
{{- $prefix := printf "TRAWL_%s" (upper $role) -}}
{{- $bucket := include "trawl.bucketSecret" $ -}}
{{- $nats := include "trawl.natsSecret" $ -}}
{{- if and (has "bucket" .) $bucket }}
{{- include "trawl.secretEnv" (list "AWS_ACCESS_KEY_ID" $bucket "access-key") }}
{{- include "trawl.secretEnv" (list "AWS_SECRET_ACCESS_KEY" $bucket "secret-key") }}
{{- end }}
{{- if and (has "nats" .) $nats }}
{{- include "trawl.secretEnv" (list (printf "%s_NATS_USERNAME" $prefix) $nats "username") }}
{{- end }}
{{- if has "etcd" . }}{{ with include "trawl.etcdSecret" (list $ $role "existingSecret") }}
{{- include "trawl.secretEnv" (list (printf "%s_ETCD_USERNAME" $prefix) . "username") }}
{{- end }}{{ end }}
{{- with (get $.Values $role).resources.limits.memory }}{{ if regexMatch "^[0-9]+[MGT]i$" (toString .) -}}
# Garbage is collected before the limit is reached.
- name: GOMEMLIMIT
  value: {{ include "trawl.share" (list . 80) }}
{{ end }}{{ end }}
{{- include "trawl.caEnv" $ }}
{{- with (get $.Values $role).extraEnv }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{- define "trawl.caEnv" -}}
{{- if .Values.caBundle.existingConfigMap -}}
# In addition to the public authorities, which are in the images.
- name: SSL_CERT_DIR
  value: {{ include "trawl.caDir" . }}
{{ end }}
{{- end -}}

{{/* The mounts and volumes of CAs and Secrets, for roles and the self-test. (list $ role), and the name of
the volume of Secrets where it is not secrets */}}
{{- define "trawl.trustMounts" -}}
{{- $ := index . 0 -}}
{{- if include "trawl.secretFiles" . | fromJsonArray }}
- {name: {{ index (append . "secrets") 2 }}, mountPath: {{ include "trawl.secretsDir" $ }}, readOnly: true}
{{- end }}
{{- if $.Values.caBundle.existingConfigMap }}
- {name: ca, mountPath: {{ include "trawl.caDir" $ }}, readOnly: true}
{{- end }}
{{- end -}}

{{- define "trawl.secretsVolume" -}}
{{- $name := index (append . "secrets") 2 -}}
{{- with include "trawl.secretFiles" . | fromJsonArray }}
- name: {{ $name }}
  projected:
    defaultMode: 0440
    sources:
      {{- toYaml . | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "trawl.trustVolumes" -}}
{{- $ := index . 0 -}}
{{- include "trawl.secretsVolume" . }}
{{- with $.Values.caBundle }}{{ if .existingConfigMap }}
- name: ca
  configMap:
    name: {{ .existingConfigMap }}
    items: [{key: {{ .key | quote }}, path: ca.crt}]
{{- end }}{{ end }}
{{- end -}}

{{- define "trawl.mounts" -}}
{{- $ := index . 0 -}}
- {name: config, mountPath: /etc/trawl, readOnly: true}
{{- include "trawl.trustMounts" . }}
{{- with (get $.Values (index . 1)).extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "trawl.volumes" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}
- name: config
  configMap:
    name: {{ include "trawl.name" $ }}-{{ $role }}
{{- include "trawl.trustVolumes" . }}
{{- with (get $.Values $role).extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
