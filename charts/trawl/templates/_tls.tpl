{{/* Where the files of Secrets are put: certificates, keys and credentials, a folder for each use. */}}
{{- define "trawl.secretsDir" -}}/etc/trawl-secrets{{- end -}}

{{/* The Secret with the certificate that callers of routers see; empty: plain text */}}
{{- define "trawl.callersSecret" -}}
{{- .Values.tls.callers.certManager.enabled | ternary (printf "%s-callers-tls" (include "trawl.name" .)) .Values.tls.callers.existingSecret -}}
{{- end -}}

{{/* The Secret with the certificate that identifies a role to the others; empty: plain text.
(list $ role) */}}
{{- define "trawl.roleSecret" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}
{{- $.Values.tls.roles.certManager.enabled | ternary (printf "%s-%s-tls" (include "trawl.name" $) $role) (get $.Values.tls.roles.existingSecrets $role) -}}
{{- end -}}

{{/* The Secret of a role, or of admin, for etcd: its own, or the common one. (list $ role), and
existingSecret or certSecret */}}
{{- define "trawl.etcdSecret" -}}
{{- $ := index . 0 -}}{{- $which := index . 2 -}}
{{- $own := get (get $.Values.etcd.roles (index . 1)) $which -}}
{{- $.Values.evaluation.enabled | ternary "" (default (get $.Values.etcd $which) $own) -}}
{{- end -}}

{{/* HTTPS if a role's listeners speak TLS; else empty: git fetches from the canary by plain http. (list $ role) */}}
{{- define "trawl.scheme" -}}
{{- $secret := eq (index . 1) "router" | ternary (include "trawl.callersSecret" (index . 0)) (include "trawl.roleSecret" .) -}}
{{- if and $secret (ne (index . 1) "canary") }}HTTPS{{ end -}}
{{- end -}}

{{/* Fails if settings of TLS are incomplete. */}}
{{- define "trawl.checkTLS" -}}
{{- $roles := compact (list (include "trawl.roleSecret" (list . "router")) (include "trawl.roleSecret" (list . "searcher")) (include "trawl.roleSecret" (list . "indexer"))) -}}
{{- if not (has (len $roles) (list 0 3)) }}{{ fail "tls.roles.existingSecrets: name a Secret for each of router, searcher and indexer, or for none" }}{{ end -}}
{{- with .Values.tls.callers -}}
{{- if and .clientCASecret (not (include "trawl.callersSecret" $)) }}{{ fail "tls.callers.clientCASecret: name a certificate of the routers beside it, tls.callers.existingSecret" }}{{ end -}}
{{- if and .clientCASecret $.Values.selfTest }}{{ fail "tls.callers.clientCASecret: helm test has no certificate to show; set selfTest to false" }}{{ end -}}
{{- if and .clientCASecret $.Values.canary.enabled (not $.Values.canary.certSecret) }}{{ fail "tls.callers.clientCASecret: the canary is a caller too; name its certificate in canary.certSecret, or set canary.enabled to false" }}{{ end -}}
{{- end -}}
{{- range $of := list "callers" "roles" }}{{ with (get $.Values.tls $of).certManager -}}
{{- if and .enabled (not .issuerRef.name) }}{{ fail (printf "tls.%s.certManager.issuerRef.name: name the issuer" $of) }}{{ end -}}
{{- end }}{{ end -}}
{{- if not .Values.evaluation.enabled -}}
{{- with .Values.nats }}{{ if and .existingSecret .credsSecret }}{{ fail "nats: name one of existingSecret and credsSecret" }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* The files of Secrets for a role, the self-test, or the container tokens, which makes the canary's token: a list of
projected sources, as JSON. (list $ role) */}}
{{- define "trawl.secretFiles" -}}
{{- $ := index . 0 -}}{{- $role := index . 1 -}}
{{- $etcd := has $role (list "selftest" "tokens") | ternary "admin" $role -}}
{{- $callers := include "trawl.callersSecret" $ -}}
{{- $files := list -}}
{{- if has $role (list "router" "searcher" "indexer") -}}
{{- $files = list (list (include "trawl.roleSecret" .) "roles" "ca.crt" "tls.crt" "tls.key") -}}
{{- end -}}
{{- if eq $role "canary" -}}
{{- $files = list (list $.Values.tls.callers.caSecret "callers" "ca.crt") (list $.Values.canary.certSecret "callers" "tls.crt" "tls.key") -}}
{{- else if eq $role "router" -}}
{{- $files = concat $files (list (list $callers "callers" "tls.crt" "tls.key") (list $.Values.tls.callers.clientCASecret "clients" "ca.crt")) -}}
{{- else if eq $role "selftest" -}}
{{- $files = concat $files (list (list $.Values.tls.callers.caSecret "callers" "ca.crt") (list (include "trawl.roleSecret" (list $ "searcher")) "roles" "ca.crt")) -}}
{{- end -}}
{{- if ne $role "canary" -}}
{{- if not $.Values.evaluation.enabled -}}
{{- $files = append $files (list $.Values.etcd.caSecret "etcd" "ca.crt") -}}
{{- end -}}
{{- $files = concat $files (list (list (include "trawl.etcdSecret" (list $ $etcd "certSecret")) "etcd" "tls.crt" "tls.key")
  (list (include "trawl.etcdSecret" (list $ $etcd "existingSecret")) "etcd" "password")) -}}
{{- end -}}
{{- if has $role (list "router" "indexer") -}}
{{- $files = append $files (list (include "trawl.natsSecret" $) "nats" "password") -}}
{{- if not $.Values.evaluation.enabled }}{{ with $.Values.nats -}}
{{- $files = concat $files (list (list .caSecret "nats" "ca.crt") (list .certSecret "nats" "tls.crt" "tls.key") (list .credsSecret "nats" "creds")) -}}
{{- end }}{{ end -}}
{{- end -}}
{{- $sources := list -}}
{{- range $file := $files }}{{ if first $file -}}
{{- $items := list -}}
{{- range $key := slice $file 2 }}{{ $items = append $items (dict "key" $key "path" (printf "%s/%s" (index $file 1) $key)) }}{{ end -}}
{{- $sources = append $sources (dict "secret" (dict "name" (first $file) "items" $items)) -}}
{{- end }}{{ end -}}
{{- toJson $sources -}}
{{- end -}}

{{/* The settings of TLS of files in a folder. (list folder ca cert): whether there are a CA and a certificate */}}
{{- define "trawl.config.files" -}}
{{- $dir := printf "%s/%s" (include "trawl.secretsDir" .) (index . 0) -}}
{{- if index . 1 }}
ca-file: {{ $dir }}/ca.crt
{{- end }}
{{- if index . 2 }}
cert-file: {{ $dir }}/tls.crt
key-file: {{ $dir }}/tls.key
{{- end }}
{{- end -}}

{{/* The settings of etcd, and a role's user and certificate for it. (list $ role) */}}
{{- define "trawl.config.etcd" -}}
{{- $ := index . 0 -}}{{- $cert := include "trawl.etcdSecret" (append . "certSecret") -}}
{{- $ca := $.Values.evaluation.enabled | ternary "" $.Values.etcd.caSecret -}}
etcd:
  endpoints: {{ include "trawl.etcdEndpoints" $ }}
  prefix: {{ $.Values.etcd.prefix | quote }}
  {{- if include "trawl.etcdSecret" (append . "existingSecret") }}
  password-file: {{ include "trawl.secretsDir" $ }}/etcd/password
  {{- end }}
  {{- with include "trawl.config.files" (list "etcd" $ca $cert) }}
  tls:
    {{- . | trim | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* TLS of the listeners of searchers and indexers, and of routers' calls to searchers. (list $ role) */}}
{{- define "trawl.config.roleTLS" -}}
{{- if include "trawl.roleSecret" . }}
tls:
  {{- include "trawl.config.files" (list "roles" false true) | trim | nindent 2 }}
  client-ca-file: {{ include "trawl.secretsDir" . }}/roles/ca.crt
{{- end }}
{{- end -}}

{{- define "trawl.config.routerTLS" -}}
{{- if include "trawl.callersSecret" . }}
tls:
  {{- include "trawl.config.files" (list "callers" false true) | trim | nindent 2 }}
  {{- if .Values.tls.callers.clientCASecret }}
  client-ca-file: {{ include "trawl.secretsDir" . }}/clients/ca.crt
  client-names: {{ toJson .Values.tls.callers.clientNames }}
  {{- end }}
{{- end }}
{{- if include "trawl.roleSecret" (list . "router") }}
searcher:
  tls:
    {{- include "trawl.config.files" (list "roles" true true) | trim | nindent 4 }}
{{- end }}
{{- end -}}

{{/* The settings of etcd as an environment, for a subcommand of trawl. (list $ subcommand role) */}}
{{- define "trawl.etcdEnv" -}}
{{- $ := index . 0 -}}{{- $prefix := printf "TRAWL_%s_ETCD" (upper (index . 1)) -}}{{- $role := index . 2 -}}
{{- $dir := printf "%s/etcd" (include "trawl.secretsDir" $) -}}
- name: {{ $prefix }}_ENDPOINTS
  value: {{ join "," (include "trawl.etcdEndpoints" $ | fromJsonArray) | quote }}
- name: {{ $prefix }}_PREFIX
  value: {{ $.Values.etcd.prefix | quote }}
{{ with include "trawl.etcdSecret" (list $ $role "existingSecret") -}}
{{- include "trawl.secretEnv" (list (printf "%s_USERNAME" $prefix) . "username") -}}
- name: {{ $prefix }}_PASSWORD_FILE
  value: {{ $dir }}/password
{{ end }}
{{- if and $.Values.etcd.caSecret (not $.Values.evaluation.enabled) -}}
- name: {{ $prefix }}_TLS_CA_FILE
  value: {{ $dir }}/ca.crt
{{ end }}
{{- if include "trawl.etcdSecret" (list $ $role "certSecret") -}}
- name: {{ $prefix }}_TLS_CERT_FILE
  value: {{ $dir }}/tls.crt
- name: {{ $prefix }}_TLS_KEY_FILE
  value: {{ $dir }}/tls.key
{{ end }}
{{- end -}}
