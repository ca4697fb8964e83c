{{- define "s3sink-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "s3sink-operator.fullname" -}}
{{- $name := include "s3sink-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Helm adds app.kubernetes.io/managed-by when it installs, so that the output of `helm template` has none. */ -}}
{{- define "s3sink-operator.labels" -}}
{{ include "s3sink-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "s3sink-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "s3sink-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "s3sink-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "s3sink-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "s3sink-operator.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "s3sink-operator.driverLabels" -}}
app.kubernetes.io/name: s3sink
app.kubernetes.io/managed-by: s3sink-operator
s3sink.dev/role: driver
{{- end -}}

{{- define "s3sink-operator.roleRules" -}}
- apiGroups: [s3sink.dev]
  resources: [s3sinks]
  verbs: [list, watch]
- apiGroups: [s3sink.dev]
  resources: [s3sinks/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [get, list, watch, create, patch, delete]
# The operator itself only reads pods. It grants the other verbs to drivers in Cluster mode, and can grant only
# rights that it has.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete, deletecollection]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}
