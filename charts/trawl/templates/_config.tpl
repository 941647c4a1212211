{{/* Where etcd, NATS and the bucket are. */}}
{{- define "trawl.etcdEndpoints" -}}
{{- .Values.evaluation.enabled | ternary (list (printf "http://%s-etcd:2379" (include "trawl.name" .))) .Values.etcd.endpoints | toJson -}}
{{- end -}}

{{- define "trawl.natsURL" -}}
{{- .Values.evaluation.enabled | ternary (printf "nats://%s-nats:4222" (include "trawl.name" .)) .Values.nats.url -}}
{{- end -}}

{{- define "trawl.bucketURL" -}}
{{- .Values.evaluation.enabled | ternary (printf "s3://trawl?endpoint=http://%s-s3:7070&region=us-east-1" (include "trawl.name" .)) .Values.bucket.url -}}
{{- end -}}

{{/* The Secret with the user of NATS; empty: none */}}
{{- define "trawl.natsSecret" -}}
{{- .Values.evaluation.enabled | ternary (printf "%s-evaluation" (include "trawl.name" .)) .Values.nats.existingSecret -}}
{{- end -}}

{{/* The Secret with the credentials of the bucket; empty: none */}}
{{- define "trawl.bucketSecret" -}}
{{- .Values.evaluation.enabled | ternary (printf "%s-evaluation" (include "trawl.name" .)) .Values.bucket.existingSecret -}}
{{- end -}}

{{/* A share of a size such as 50Gi, as Trawl writes sizes. (list size percent) */}}
{{- define "trawl.share" -}}
{{- $size := index . 0 -}}
{{- $mib := regexFind "^[0-9]+" $size | int64 -}}
{{- if hasSuffix "Gi" $size }}{{ $mib = mul $mib 1024 }}{{ else if hasSuffix "Ti" $size }}{{ $mib = mul $mib 1048576 }}{{ end -}}
{{- div (mul $mib (index . 1)) 100 -}}MiB
{{- end -}}

{{/* Where the chart's own repository is put, in the indexer. */}}
{{- define "trawl.fixtureDir" -}}/usr/share/trawl/selftest{{- end -}}

{{/* Where credentials are put: those of Git servers in the indexer, those of webhooks
in the router. */}}
{{- define "trawl.credentialsDir" -}}/etc/trawl-credentials{{- end -}}

{{/* Where the sources are put, in the indexer. */}}
{{- define "trawl.sourcesDir" -}}/etc/trawl-sources{{- end -}}

{{/* Where the certificates of authorities are put. */}}
{{- define "trawl.caDir" -}}/etc/trawl-ca{{- end -}}

{{/* Seconds for calls to finish when a pod ends, and seconds that the pod has in all.
Queries get their longest time. */}}
{{- define "trawl.drainSeconds" -}}{{ add .Values.maxQuerySeconds 5 }}{{- end -}}
{{- define "trawl.graceSeconds" -}}{{ add .Values.maxQuerySeconds 25 }}{{- end -}}

{{- define "trawl.config.telemetry" -}}
{{- with .Values.telemetry -}}
log-level: {{ .logLevel }}
otlp-endpoint: {{ .otlpEndpoint | quote }}
trace-sampling: {{ .traceSampling }}
{{- end }}
{{- end -}}

{{/* The settings of all roles. (list $ role) */}}
{{- define "trawl.config.common" -}}
{{ include "trawl.config.telemetry" (index . 0) }}
{{ include "trawl.config.etcd" . }}
{{- end -}}

{{- define "trawl.config.nats" -}}
nats:
  url: {{ include "trawl.natsURL" . | quote }}
  replicas: {{ .Values.nats.replicas }}
  prefix: {{ .Values.nats.prefix | quote }}
  {{- if include "trawl.natsSecret" . }}
  password-file: {{ include "trawl.secretsDir" . }}/nats/password
  {{- end }}
  {{- if not .Values.evaluation.enabled }}
  {{- if .Values.nats.credsSecret }}
  creds-file: {{ include "trawl.secretsDir" . }}/nats/creds
  {{- end }}
  {{- with include "trawl.config.files" (list "nats" .Values.nats.caSecret .Values.nats.certSecret) }}
  tls:
    {{- . | trim | nindent 4 }}
  {{- end }}
  {{- end }}
{{- end -}}

{{- define "trawl.config.bucket" -}}
bucket:
  url: {{ include "trawl.bucketURL" . | quote }}
{{- end -}}

{{- define "trawl.config.access" -}}
access:
  mode: {{ .Values.access.mode }}
  staleness: {{ .Values.access.stalenessSeconds }}s
  outage-grace: {{ .Values.access.outageGraceSeconds }}s
{{- end -}}

{{/* The names by which callers may address the routers: those of their Services, Ingresses and
routes, and access.hosts. If routers require no tokens, requests under other names could come
from web pages. */}}
{{- define "trawl.routerHosts" -}}
{{- $hosts := list -}}
{{- range $service := list "router" "router-pods" -}}
{{- $short := printf "%s-%s" (include "trawl.name" $) $service -}}
{{- range $suffix := list "" ".%s" ".%s.svc" ".%s.svc.cluster.local" -}}
{{- $hosts = append $hosts (print $short (replace "%s" $.Release.Namespace $suffix)) -}}
{{- end }}{{ end -}}
{{- range .Values.router.ingress }}{{ if .enabled }}{{ $hosts = append $hosts .host }}{{ end }}{{ end -}}
{{- range .Values.router.route }}{{ if .enabled }}{{ $hosts = concat $hosts .hostnames }}{{ end }}{{ end -}}
{{- concat $hosts .Values.access.hosts | uniq | toJson -}}
{{- end -}}

{{/* What may be indexed; routers and indexers both check it. */}}
{{- define "trawl.config.source" -}}
schemes: {{ toJson .Values.source.schemes }}
hosts: {{ toJson .Values.source.hosts }}
private-networks: {{ toJson .Values.source.privateNetworks }}
folders: {{ .Values.selfTest | ternary (list (include "trawl.fixtureDir" .)) list | toJson }}
{{- if .Values.canary.enabled }}
canary: http://{{ include "trawl.canaryRepo" . }}.git
{{- end }}
{{- end -}}

{{- define "trawl.config.router" -}}
grpc: ":7430"
http: ":7431"
drain-delay: 5s
drain-timeout: {{ include "trawl.drainSeconds" . }}s
replication: {{ .Values.replication }}
max-timeout: {{ .Values.maxQuerySeconds }}s
push-pause: {{ .Values.pushPauseSeconds }}s
repos-per-minute: {{ int .Values.router.reposPerMinute }}
caller-share: {{ .Values.router.callerShare }}
caller-processors: {{ .Values.router.callerProcessors }}
{{- include "trawl.config.routerTLS" . }}
{{ include "trawl.config.common" (list . "router") }}
{{ include "trawl.config.nats" . }}
source:
  {{- include "trawl.config.source" . | nindent 2 }}
  {{- if .Values.router.webhookSecret }}
  credentials: {{ include "trawl.credentialsDir" . }}
  {{- end }}
{{ include "trawl.config.access" . }}
{{- if eq .Values.access.mode "insecure" }}
  hosts: {{ include "trawl.routerHosts" . }}
{{- end }}
{{- end -}}

{{- define "trawl.config.searcher" -}}
grpc: ":7440"
http: ":7441"
drain-delay: 5s
drain-timeout: {{ include "trawl.drainSeconds" . }}s
cache-dir: /var/cache/trawl/searcher
disk-budget: {{ include "trawl.share" (list .Values.searcher.cache.size 80) }}
replication: {{ .Values.replication }}
{{- include "trawl.config.roleTLS" (list . "searcher") }}
{{ include "trawl.config.common" (list . "searcher") }}
{{ include "trawl.config.bucket" . }}
{{ include "trawl.config.access" . }}
{{- end -}}

{{- define "trawl.config.indexer" -}}
grpc: "127.0.0.1:7450"
http: ":7451"
drain-delay: 0s
drain-timeout: 10s
cache-dir: /var/cache/trawl/indexer
cache-size: {{ include "trawl.share" (list .Values.indexer.cache.size 50) }}
workers: {{ .Values.indexer.workers }}
job-timeout: {{ .Values.indexer.jobTimeoutSeconds }}s
poll-per-second: {{ .Values.indexer.pollPerSecond }}
push-pause: {{ .Values.pushPauseSeconds }}s
compact:
{{- if not .Values.indexer.compact.enabled }}
  every: 0s
{{- end }}
  reclaim: {{ .Values.indexer.compact.reclaimHours }}h
{{- if kindIs "slice" .Values.sources }}
sources: {{ include "trawl.sourcesDir" . }}/sources.yaml
{{- end }}
{{- include "trawl.config.roleTLS" (list . "indexer") }}
{{ include "trawl.config.common" (list . "indexer") }}
{{ include "trawl.config.nats" . }}
{{ include "trawl.config.bucket" . }}
source:
  {{- include "trawl.config.source" . | nindent 2 }}
  {{- if or .Values.source.credentials .Values.source.existingSecret .Values.source.knownHosts }}
  credentials: {{ include "trawl.credentialsDir" . }}
  {{- end }}
  {{- if .Values.caBundle.existingConfigMap }}
  ca-file: {{ include "trawl.caDir" . }}/ca.crt
  {{- end }}
{{- end -}}

{{/* Where indexers reach the canary, the name of its repo, and where its token is put. */}}
{{- define "trawl.canaryAddress" -}}{{ include "trawl.name" . }}-canary-pods:7461{{- end -}}
{{- define "trawl.canaryRepo" -}}{{ include "trawl.canaryAddress" . }}/trawl/canary{{- end -}}
{{- define "trawl.tokenDir" -}}/etc/trawl-token{{- end -}}

{{/* Whether the canary's pod makes its token itself; else empty. */}}
{{- define "trawl.canaryMakesToken" -}}
{{- if and (eq .Values.access.mode "tokens") (not .Values.canary.tokenSecret) }}true{{ end -}}
{{- end -}}

{{- define "trawl.config.canary" -}}
grpc: "127.0.0.1:7460"
http: ":7461"
advertise: {{ include "trawl.canaryAddress" . }}
router:
  grpc: {{ include "trawl.name" . }}-router:7430
  http: {{ include "trawl.name" . }}-router:7431
  {{- if include "trawl.callersSecret" . }}
  tls: true
  {{- with include "trawl.config.files" (list "callers" .Values.tls.callers.caSecret .Values.canary.certSecret) }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  {{- else }}
  plaintext-token: true
  {{- end }}
  {{- if eq .Values.access.mode "tokens" }}
  token-file: {{ include "trawl.tokenDir" . }}/token
  {{- end }}
{{ include "trawl.config.telemetry" . }}
{{- end -}}
