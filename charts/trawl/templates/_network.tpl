{{/* The port of a URL, or the given port if it has none. (list url port) */}}
{{- define "trawl.port" -}}
{{- regexFind ":[0-9]+$" (urlParse (index . 0)).host | trimPrefix ":" | default (index . 1) -}}
{{- end -}}

{{/* Ports of NetworkPolicies. */}}
{{- define "trawl.ports" -}}
ports:
  {{- range . }}
  - {protocol: TCP, port: {{ . }}}
  {{- end }}
{{- end -}}

{{/* Pods of this release. (list $ component…) */}}
{{- define "trawl.peers" -}}
{{- $ := first . -}}
{{- range $i, $part := rest . }}{{ if $i }}
{{ end -}}
- podSelector:
    matchLabels:
      {{- include "trawl.selector" (list $ $part) | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Egress to peers outside of the chart. (peers ports…) */}}
{{- define "trawl.outside" -}}
-
  {{- with first . }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "trawl.ports" (rest .) | nindent 2 }}
{{- end -}}

{{/* Egress to a server of the evaluation. (list $ component port) */}}
{{- define "trawl.inside" -}}
- to:
    {{- include "trawl.peers" (list (index . 0) (index . 1)) | nindent 4 }}
  {{- include "trawl.ports" (list (index . 2)) | nindent 2 }}
{{- end -}}

{{- define "trawl.toDNS" -}}
- ports:
    - {protocol: UDP, port: 53}
    - {protocol: TCP, port: 53}
{{- end -}}

{{- define "trawl.toEtcd" -}}
{{- if .Values.evaluation.enabled }}{{ include "trawl.inside" (list . "etcd" 2379) }}{{ else -}}
{{- $ports := list -}}
{{- range .Values.etcd.endpoints }}{{ $ports = append $ports (include "trawl.port" (list . "2379")) }}{{ end -}}
{{- include "trawl.outside" (prepend (uniq $ports) .Values.networkPolicy.etcd) -}}
{{- end -}}
{{- end -}}

{{- define "trawl.toNATS" -}}
{{- if .Values.evaluation.enabled }}{{ include "trawl.inside" (list . "nats" 4222) }}{{ else -}}
{{- $ports := list -}}
{{- range splitList "," .Values.nats.url }}{{ $ports = append $ports (include "trawl.port" (list (trim .) "4222")) }}{{ end -}}
{{- include "trawl.outside" (prepend (uniq $ports) .Values.networkPolicy.nats) -}}
{{- end -}}
{{- end -}}

{{- define "trawl.toBucket" -}}
{{- if .Values.evaluation.enabled }}{{ include "trawl.inside" (list . "s3" 7070) }}{{ else -}}
{{- $endpoint := regexFind "endpoint=[^&]+" .Values.bucket.url | trimPrefix "endpoint=" | default "https://s3.amazonaws.com" -}}
{{- $port := include "trawl.port" (list $endpoint (hasPrefix "http:" $endpoint | ternary "80" "443")) -}}
{{- include "trawl.outside" (list .Values.networkPolicy.bucket $port) -}}
{{- if not .Values.bucket.existingSecret }}
# The agent of EKS Pod Identity, on each node.
- to:
    - ipBlock: {cidr: 169.254.170.23/32}
    - ipBlock: {cidr: "fd00:ec2::23/128"}
  {{- include "trawl.ports" (list 80) | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "trawl.toTraces" -}}
{{- with .Values.telemetry.otlpEndpoint }}
{{ include "trawl.outside" (list list (include "trawl.port" (list . "4317"))) }}
{{- end }}
{{- end -}}

{{/* Ingress to a role's HTTP, from Prometheus and the self-test. (list $ port) */}}
{{- define "trawl.fromReaders" -}}
{{- $ := index . 0 -}}
- from:
    {{- toYaml $.Values.networkPolicy.metrics | nindent 4 }}
    {{- if $.Values.selfTest }}
    {{- include "trawl.peers" (list $ "selftest") | nindent 4 }}
    {{- end }}
  {{- include "trawl.ports" (list (index . 1)) | nindent 2 }}
{{- end -}}
