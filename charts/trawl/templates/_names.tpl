{{/* The name of all objects: at most 40 characters, so that the longest suffix and
what Kubernetes adds to it still fit into a label. A longer one ends in its hash,
so that two releases never share it. It begins with a letter, as Services must. */}}
{{- define "trawl.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := default (contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name)) .Values.fullnameOverride -}}
{{- $full = regexReplaceAll "[._]+" (lower $full) "-" -}}
{{- if regexMatch "^[0-9]" $full }}{{ $full = printf "t%s" $full }}{{ end -}}
{{- if gt (len $full) 40 -}}
{{- $full = printf "%s-%s" (trunc 31 $full | trimSuffix "-") (sha256sum $full | trunc 8) -}}
{{- end -}}
{{- $full -}}
{{- end -}}

{{/* The selector of the pods of a component; it never changes. (list $ component) */}}
{{- define "trawl.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ default $.Chart.Name $.Values.nameOverride | quote }}
app.kubernetes.io/instance: {{ $.Release.Name | quote }}
{{- with index . 1 }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{/* The labels of an object of a component. (list $ component) */}}
{{- define "trawl.labels" -}}
{{- $ := index . 0 -}}
{{ include "trawl.selector" . }}
app.kubernetes.io/part-of: trawl
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels of pods, which do not change with the version of the chart.
(list $ component) */}}
{{- define "trawl.podLabels" -}}
{{- $ := index . 0 -}}
{{ include "trawl.selector" . }}
{{- with $.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The metadata of an object. (list $ component name) and, where it has some,
labels and annotations of its own */}}
{{- define "trawl.metadata" -}}
{{- $ := index . 0 -}}
name: {{ index . 2 }}
namespace: {{ $.Release.Namespace }}
labels:
  {{- include "trawl.labels" (list $ (index . 1)) | nindent 2 }}
  {{- if gt (len .) 3 }}{{ with index . 3 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}{{ end }}
{{- $annotations := deepCopy $.Values.commonAnnotations -}}
{{- if gt (len .) 4 }}{{ $annotations = mergeOverwrite $annotations (index . 4) }}{{ end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
