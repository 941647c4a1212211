{{- /* trawl.alerts renders the groups of alerts/alerts.yaml with what monitoring.alerts changes.
A threshold is the number that an expression ends with. */ -}}
{{- define "trawl.alerts" -}}
{{- $changes := deepCopy .Values.monitoring.alerts }}
{{- $groups := list }}
{{- range $group := (fromYaml (.Files.Get "alerts/alerts.yaml")).groups }}
{{- $rules := list }}
{{- range $rule := $group.rules }}
{{- $change := index $changes $rule.alert | default dict }}
{{- $_ := unset $changes $rule.alert }}
{{- if hasKey $change "threshold" }}
{{- $threshold := "([<>]) [0-9.]+$" }}
{{- if not (regexMatch $threshold $rule.expr) }}
{{- fail (printf "monitoring.alerts.%s.threshold: this alert has no single threshold; set enabled: false and add a rule of your own" $rule.alert) }}
{{- end }}
{{- $_ := set $rule "expr" (regexReplaceAll $threshold $rule.expr (printf "${1} %v" $change.threshold)) }}
{{- end }}
{{- with $change.for }}
{{- $_ := set $rule "for" . }}
{{- end }}
{{- with $change.severity }}
{{- $_ := set $rule.labels "severity" . }}
{{- end }}
{{- if not (and (hasKey $change "enabled") (not $change.enabled)) }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- if $rules }}
{{- $groups = append $groups (dict "name" $group.name "rules" $rules) }}
{{- end }}
{{- end }}
{{- range $name := keys $changes | sortAlpha }}
{{- fail (printf "monitoring.alerts.%s: there is no such alert; docs/runbook.md lists them" $name) }}
{{- end }}
{{- toYaml (dict "groups" $groups) }}
{{- end }}
