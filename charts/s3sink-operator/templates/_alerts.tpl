{{- /* One alert. Takes root, name, set (its values), expr, summary, description and page, where people read on. */ -}}
{{- define "s3sink-operator.alert" -}}
{{- if .set.enabled -}}
- alert: {{ .name }}
  expr: |-
    {{- .expr | nindent 4 }}
  for: {{ .set.for }}
  labels:
    severity: {{ .set.severity }}
    {{- with .root.Values.alerts.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    summary: {{ .summary | quote }}
    description: {{ .description | quote }}
    {{- with .root.Values.alerts.runbookUrl }}
    runbook_url: {{ printf "%s/%s" (trimSuffix "/" .) $.page | quote }}
    {{- else }}
    runbook: {{ printf "docs/%s" .page | quote }}
    {{- end }}
{{- end }}
{{- end -}}

{{- /* What a counter rose by, and what it began with: a series that appears has no zero before it. */ -}}
{{- define "s3sink-operator.counted" -}}
sum by (namespace, sink) (
  (increase({{ .metric }}[{{ .window }}]) > 0)
  or ({{ .metric }} > 0 unless {{ .metric }} offset {{ .window }})
) > {{ .threshold }}
{{- end -}}

{{- /* Sinks that do nothing, as they were told. */ -}}
{{- define "s3sink-operator.idle" -}}
s3sink_operator_sink_info{phase=~"Paused|Stopped|Completed"}
{{- end -}}

{{- /* What a sink does, and why, as its resource says. */ -}}
{{- define "s3sink-operator.cause" -}}
{{ printf `{{ with printf "s3sink_operator_sink_info{namespace='%%s',sink='%%s'}" $labels.namespace $labels.sink | query }}{{ with first . }}{{ .Labels.phase }} ({{ .Labels.reason }}){{ end }}{{ end }}` }}
{{- end -}}

{{- define "s3sink-operator.alerts" -}}
groups:
  {{- range $group := list "sinks" "operator" }}
  - name: {{ include "s3sink-operator.fullname" $ }}-{{ $group }}
    {{- with include (printf "s3sink-operator.alerts.%s" $group) $ | trim }}
    rules:
      {{- nindent 6 . }}
    {{- else }}
    rules: []
    {{- end }}
  {{- end }}
{{- end -}}

{{- define "s3sink-operator.alerts.sinks" -}}
{{- $of := `{{ $labels.namespace }}/{{ $labels.sink }}` -}}
{{- $idle := include "s3sink-operator.idle" . -}}
{{- $cause := include "s3sink-operator.cause" . -}}
{{- $look := "`kubectl --namespace {{ $labels.namespace }} describe s3sink {{ $labels.sink }}`" -}}
{{- with .Values.alerts.lagGrowing }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkLagGrowing"
  "expr" (printf `max by (namespace, sink) (min_over_time(s3sink_operator_sink_lag_records[%[1]s])) > %[2]v
and
max by (namespace, sink) (min_over_time(s3sink_operator_sink_lag_records[%[1]s]))
  > max by (namespace, sink) (min_over_time(s3sink_operator_sink_lag_records[%[1]s] offset %[1]s))
unless on (namespace, sink) (
  last_over_time(%[3]s[%[1]s])
  or last_over_time(%[3]s[%[1]s] offset %[1]s)
)` .window .threshold $idle)
  "summary" (printf "Sink %s does not keep up" $of)
  "description" (printf "At its lowest in %s sink %s was {{ $value }} offsets behind Kafka, more than in the %s before. %s tells more." .window $of .window $look)
  "page" "chart.md#alerts") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.partitionBehind }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkPartitionBehind"
  "expr" (printf `max by (namespace, sink) (s3sink_operator_sink_lag_seconds) > %[1]v
and
time() - max by (namespace, sink) (s3sink_operator_sink_last_flush_timestamp_seconds) <= %[1]v
unless on (namespace, sink)
%[2]s` .threshold $idle)
  "summary" (printf "A partition of sink %s is not flushed" $of)
  "description" (printf "Sink %s flushes, but records of a partition have been waiting for {{ $value | humanizeDuration }}. %s names the partition, and what holds it up." $of $look)
  "page" "troubleshooting.md#records-and-jobs") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.noFlush }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkNoFlush"
  "expr" (printf `max by (namespace, sink) (s3sink_operator_sink_lag_seconds) > %[1]v
unless
time() - max by (namespace, sink) (s3sink_operator_sink_last_flush_timestamp_seconds) <= %[1]v
unless on (namespace, sink)
%[2]s` .threshold $idle)
  "summary" (printf "Sink %s flushes nothing" $of)
  "description" (printf "Records for sink %s have been waiting for {{ $value | humanizeDuration }}, and nothing was flushed since. Kafka deletes them when their retention is over. %s names the cause." $of $look)
  "page" "troubleshooting.md") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.retrying }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkRetrying"
  "expr" (printf `max by (namespace, sink) (s3sink_operator_sink_retry_attempts) >= %v
unless on (namespace, sink)
%s` .threshold $idle)
  "summary" (printf "Sink %s fails again and again" $of)
  "description" (printf "Sink %s has failed {{ $value }} times since its last flush. status.retry.lastError has the last cause: %s." $of $look)
  "page" "troubleshooting.md") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.recordsSkipped }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkRecordsSkipped"
  "expr" (include "s3sink-operator.counted" (dict "metric" "s3sink_skipped_records_total" "window" .window "threshold" .threshold))
  "summary" (printf "Sink %s leaves bad records out" $of)
  "description" (printf "Sink %s left out {{ $value | humanize }} bad records in the last %s (errors.records: Skip). The flush manifests below its statePrefix list their offsets." $of .window)
  "page" "troubleshooting.md#records-and-jobs") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.recordsLost }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkRecordsLost"
  "expr" (include "s3sink-operator.counted" (dict "metric" "s3sink_gap_offsets_total" "window" .window "threshold" .threshold))
  "summary" (printf "Kafka deleted records before sink %s wrote them" $of)
  "description" (printf "{{ $value | humanize }} offsets went into recorded gaps of sink %s in the last %s. status.gaps says where: %s. Raise the topic's retention, or make the sink faster." $of .window $look)
  "page" "troubleshooting.md#kafka") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.driverRestarting }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkDriverRestarting"
  "expr" (printf `max by (namespace, sink) (changes(s3sink_operator_sink_driver_restarts[%s])) >= %v
unless on (namespace, sink)
s3sink_operator_sink_info{phase="Stopped"}` .window .threshold)
  "summary" (printf "The driver of sink %s crashes again and again" $of)
  "description" (printf "The driver of sink %s was started again {{ $value }} times in the last %s. status.driver.lastExit has its exit code: %s." $of .window $look)
  "page" "troubleshooting.md#pods") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.notReady }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkNotReady"
  "expr" `max by (namespace, sink) (s3sink_operator_sink_ready) < 1
unless on (namespace, sink)
s3sink_operator_sink_info{phase=~"Pending|Paused|Stopped|Completed"}
unless on (namespace, sink) (
  s3sink_operator_sink_info{phase="Degraded", reason="SpecRefused"}
  and on (namespace, sink) s3sink_operator_sink_lag_records
)`
  "summary" (printf "Sink %s is not ready" $of)
  "description" (printf "Sink %s is %s. The condition Ready has the rest: %s." $of $cause $look)
  "page" "troubleshooting.md#pods") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.specRefused }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkSpecRefused"
  "expr" `max by (namespace, sink) (s3sink_operator_sink_spec_refused) > 0
unless on (namespace, sink)
s3sink_operator_sink_info{phase="Stopped"}`
  "summary" (printf "The spec of sink %s is refused" $of)
  "description" (printf "The spec of sink %s has mistakes, so that it has no effect; what ran before it goes on. Sink %s is %s. The condition Accepted names every mistake: %s." $of $of $cause $look)
  "page" "troubleshooting.md#the-manifest-and-its-secrets") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.stuck }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkStuck"
  "expr" `max by (namespace, sink) (s3sink_operator_sink_info{phase="Pending", reason!="WaitingForSchedule"}) > 0`
  "summary" (printf "Sink %s does not get a driver" $of)
  "description" (printf "Sink %s is %s. The condition Ready names what is in its way: %s." $of $cause $look)
  "page" "troubleshooting.md#pods") | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "s3sink-operator.alerts.operator" -}}
{{- with .Values.alerts.operatorDown }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorDown"
  "expr" (printf `absent(s3sink_operator_sinks{namespace=%q})` $.Release.Namespace)
  "summary" `The operator of S3Sinks in namespace {{ $labels.namespace }} is down, or not scraped`
  "description" (printf "Nobody has seen the operator of namespace {{ $labels.namespace }}. Sinks go on, but changes of them have no effect, and their statuses stand still. `kubectl --namespace {{ $labels.namespace }} describe deployment %s` tells more." (include "s3sink-operator.fullname" $))
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.operatorErrors }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorErrors"
  "expr" (printf `sum by (namespace) (increase(s3sink_operator_reconciles_total{outcome="error"}[%s])) > 0` .window)
  "summary" `The operator of S3Sinks in namespace {{ $labels.namespace }} fails`
  "description" (printf "The operator of namespace {{ $labels.namespace }} fails over sinks, and tries again: {{ $value | humanize }} times in the last %s. Those sinks say OperatorError, and its log has the rest." .window)
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.operatorSlow }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorSlow"
  "expr" (printf `histogram_quantile(0.99, sum by (namespace, le) (rate(s3sink_operator_queue_seconds_bucket[%s]))) > %v` .window .threshold)
  "summary" `The operator of S3Sinks in namespace {{ $labels.namespace }} does not keep up`
  "description" "One of a hundred sinks waits {{ $value | humanizeDuration }} for its turn with the operator of namespace {{ $labels.namespace }}. Raise workers, or look at the API server's load."
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.operatorWatchSilent }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorWatchSilent"
  "expr" (printf `max by (namespace) (max_over_time(s3sink_operator_watch_silent_seconds[%s])) > %v` .window .threshold)
  "summary" `The operator of S3Sinks in namespace {{ $labels.namespace }} does not hear of changes`
  "description" (printf "For {{ $value | humanizeDuration }} one of the watches of the operator of namespace {{ $labels.namespace }} has told nothing, or had told nothing before a restart in the last %s. `kubectl --namespace {{ $labels.namespace }} logs --previous deployment/%s` tells more; does the API server answer?" .window (include "s3sink-operator.fullname" $))
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- end -}}
