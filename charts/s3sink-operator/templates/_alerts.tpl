{{- /* One alert. Takes root, name, set (its values), expr, summary, description and page (of the docs). */ -}}
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

{{- /* The increase of a counter, and its first value: a new series has no zero before it. */ -}}
{{- define "s3sink-operator.counted" -}}
sum by (namespace, sink) (
  (increase({{ .metric }}[{{ .window }}]) > 0)
  or ({{ .metric }} > 0 unless {{ .metric }} offset {{ .window }})
) > {{ .threshold }}
{{- end -}}

{{- /* Sinks that are idle on purpose. */ -}}
{{- define "s3sink-operator.idle" -}}
s3sink_operator_sink_info{phase=~"Paused|Stopped|Completed"}
{{- end -}}

{{- /* Phase and reason of a sink, from its status. */ -}}
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
  "summary" (printf "Lag of sink %s is growing" $of)
  "description" (printf "The lowest lag in the last %s was {{ $value }} offsets, more than in the %s before: sink %s does not keep up with Kafka. See %s." .window .window $of $look)
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
  "description" (printf "Sink %s flushes, but records of one partition have been waiting for {{ $value | humanizeDuration }}. For the partition and the cause see %s." $of $look)
  "page" "troubleshooting.md#records-and-jobs") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.noFlush }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkNoFlush"
  "expr" (printf `max by (namespace, sink) (s3sink_operator_sink_lag_seconds) > %[1]v
unless
time() - max by (namespace, sink) (s3sink_operator_sink_last_flush_timestamp_seconds) <= %[1]v
unless on (namespace, sink)
%[2]s` .threshold $idle)
  "summary" (printf "Sink %s does not flush" $of)
  "description" (printf "Records for sink %s have been waiting for {{ $value | humanizeDuration }} without a flush. Kafka deletes them when their retention ends. For the cause see %s." $of $look)
  "page" "troubleshooting.md") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.retrying }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkRetrying"
  "expr" (printf `max by (namespace, sink) (s3sink_operator_sink_retry_attempts) >= %v
unless on (namespace, sink)
%s` .threshold $idle)
  "summary" (printf "Sink %s keeps failing" $of)
  "description" (printf "Sink %s has failed {{ $value }} times since its last flush. For the last error see status.retry.lastError: %s." $of $look)
  "page" "troubleshooting.md") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.recordsSkipped }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkRecordsSkipped"
  "expr" (include "s3sink-operator.counted" (dict "metric" "s3sink_skipped_records_total" "window" .window "threshold" .threshold))
  "summary" (printf "Sink %s skips bad records" $of)
  "description" (printf "Sink %s skipped {{ $value | humanize }} bad records in the last %s (errors.records: Skip). The flush manifests below its statePrefix list their offsets." $of .window)
  "page" "troubleshooting.md#records-and-jobs") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.deadLetters }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkDeadLetters"
  "expr" (include "s3sink-operator.counted" (dict "metric" "s3sink_dead_lettered_records_total" "window" .window "threshold" .threshold))
  "summary" (printf "Sink %s writes dead letters" $of)
  "description" (printf "{{ $value | humanize }} records of sink %s became dead letters in the last %s. For the last one and its error see status.retry.lastDeadLetter: %s." $of .window $look)
  "page" "bad-records.md") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.recordsLost }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkRecordsLost"
  "expr" (include "s3sink-operator.counted" (dict "metric" "s3sink_gap_offsets_total" "window" .window "threshold" .threshold))
  "summary" (printf "Kafka deleted records before sink %s wrote them" $of)
  "description" (printf "Sink %s recorded gaps of {{ $value | humanize }} offsets in the last %s. For topics and offsets see status.gaps: %s. Raise the retention of the topic, or make the sink faster." $of .window $look)
  "page" "troubleshooting.md#kafka") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.driverRestarting }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkDriverRestarting"
  "expr" (printf `max by (namespace, sink) (changes(s3sink_operator_sink_driver_restarts[%s])) >= %v
unless on (namespace, sink)
s3sink_operator_sink_info{phase="Stopped"}` .window .threshold)
  "summary" (printf "The driver of sink %s keeps crashing" $of)
  "description" (printf "The driver of sink %s restarted {{ $value }} times in the last %s. For its exit code see status.driver.lastExit: %s." $of .window $look)
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
  "description" (printf "Sink %s is %s. For the cause see the condition Ready: %s." $of $cause $look)
  "page" "troubleshooting.md#pods") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.specRefused }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkSpecRefused"
  "expr" `max by (namespace, sink) (s3sink_operator_sink_spec_refused) > 0
unless on (namespace, sink)
s3sink_operator_sink_info{phase="Stopped"}`
  "summary" (printf "The spec of sink %s is refused" $of)
  "description" (printf "The spec of sink %s has mistakes and no effect; the previous spec keeps running. Sink %s is %s. For every mistake see the condition Accepted: %s." $of $of $cause $look)
  "page" "troubleshooting.md#the-manifest-and-its-secrets") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.stuck }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkStuck"
  "expr" `max by (namespace, sink) (s3sink_operator_sink_info{phase="Pending", reason!="WaitingForSchedule"}) > 0`
  "summary" (printf "Sink %s gets no driver" $of)
  "description" (printf "Sink %s is %s. For what blocks its driver see the condition Ready: %s." $of $cause $look)
  "page" "troubleshooting.md#pods") | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "s3sink-operator.alerts.operator" -}}
{{- with .Values.alerts.operatorDown }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorDown"
  "expr" (printf `absent(s3sink_operator_sinks{namespace=%q})` $.Release.Namespace)
  "summary" `The S3Sink operator in namespace {{ $labels.namespace }} is down, or not scraped`
  "description" (printf "Prometheus has no metrics of the operator in namespace {{ $labels.namespace }}. Sinks keep running, but changes of them have no effect and their statuses are not updated. See `kubectl --namespace {{ $labels.namespace }} describe deployment %s`." (include "s3sink-operator.fullname" $))
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.operatorErrors }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorErrors"
  "expr" (printf `sum by (namespace) (increase(s3sink_operator_reconciles_total{outcome="error"}[%s])) > 0` .window)
  "summary" `The S3Sink operator in namespace {{ $labels.namespace }} has errors`
  "description" (printf "The operator in namespace {{ $labels.namespace }} failed to reconcile sinks {{ $value | humanize }} times in the last %s, and retries. See its log; if the error is its own, the sinks have the reason OperatorError." .window)
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.operatorSlow }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorSlow"
  "expr" (printf `histogram_quantile(0.99, sum by (namespace, le) (rate(s3sink_operator_queue_seconds_bucket[%s]))) > %v` .window .threshold)
  "summary" `The S3Sink operator in namespace {{ $labels.namespace }} is slow`
  "description" "One sink in a hundred waits {{ $value | humanizeDuration }} in the queue of the operator in namespace {{ $labels.namespace }}. Raise workers, or check the load of the API server."
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- with .Values.alerts.operatorWatchSilent }}
{{- include "s3sink-operator.alert" (dict "root" $ "set" . "name" "S3SinkOperatorWatchSilent"
  "expr" (printf `max by (namespace) (max_over_time(s3sink_operator_watch_silent_seconds[%s])) > %v` .window .threshold)
  "summary" `A watch of the S3Sink operator in namespace {{ $labels.namespace }} has stalled`
  "description" (printf "A watch of the operator in namespace {{ $labels.namespace }} was silent for {{ $value | humanizeDuration }} within the last %s, so that changes go unnoticed. Check that the API server answers, and see `kubectl --namespace {{ $labels.namespace }} logs --previous deployment/%s`." .window (include "s3sink-operator.fullname" $))
  "page" "operator.md#watching-it") | nindent 0 }}
{{- end }}
{{- end -}}
