{{- /* Checks that the schema cannot express: one value against another. */ -}}
{{- define "holdfast.check" -}}
{{- /* Checks against existing objects: this release before the upgrade, and other releases. Whoever installs a release
       may list Deployments in its namespace. Elsewhere that takes a right that not everybody has. */ -}}
{{- $new := .Values.watchNamespaces | default list }}
{{- $where := ternary "" .Release.Namespace (.Values.checkOtherNamespaces | default false) }}
{{- range (lookup "apps/v1" "Deployment" $where "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- if and (eq (get $labels "app.kubernetes.io/name" | toString) "holdfast") (eq (get $labels "app.kubernetes.io/managed-by" | toString) "Helm") }}
{{- $of := get $labels "app.kubernetes.io/instance" }}
{{- $old := list }}
{{- $arguments := (first .spec.template.spec.containers).args | default list }}
{{- range $arguments }}
{{- if hasPrefix "--watch-namespace=" . }}{{ $old = append $old (trimPrefix "--watch-namespace=" .) }}{{ end }}
{{- end }}
{{- if and (eq .metadata.namespace $.Release.Namespace) (eq $of $.Release.Name) }}
{{- if not (or (include "holdfast.runsJobs" $) (has "--rescue=observe" $arguments)) }}
{{- fail (printf "rescue.mode=observe: release %s works on jobs, and would leave them: install a second release in another namespace, with --skip-crds and rescue.mode=observe" $of) }}
{{- end }}
{{- include "holdfast.checkLeft" (dict "old" $old "new" $new) }}
{{- else if eq .metadata.namespace $.Release.Namespace }}
{{- fail (printf "release %s of Holdfast is in namespace %s already, and both would share its Leases: install this one in another namespace" $of $.Release.Namespace) }}
{{- else if and (include "holdfast.runsJobs" $) (not (has "--rescue=observe" $arguments)) }}
{{- if not (and $old $new) }}
{{- fail (printf "release %s of Holdfast is in namespace %s already, and a job must not have two operators: set watchNamespaces in both" $of .metadata.namespace) }}
{{- end }}
{{- range $old }}
{{- if has . $new }}
{{- fail (printf "watchNamespaces: %s is worked on by release %s already: list it in one release only" . $of) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if not (regexMatch "^[a-z]" (include "holdfast.name" .)) }}
{{- fail (printf "release %s: a Service's name must begin with a letter: set nameOverride to such a name" .Release.Name) }}
{{- end }}
{{- with .Values.operator }}
{{- $lease := include "holdfast.milliseconds" .leaseDuration | int }}
{{- $deadline := include "holdfast.milliseconds" .renewDeadline | int }}
{{- $retry := include "holdfast.milliseconds" .retryPeriod | int }}
{{- if gt $lease 3600000 }}
{{- fail (printf "operator.leaseDuration (%s) must be at most 1h" .leaseDuration) }}
{{- end }}
{{- if or (lt $retry 100) (gt $retry 4000) }}
{{- fail (printf "operator.retryPeriod (%s) must be from 100ms to 4s: a renewal older than 5s counts as an outage" .retryPeriod) }}
{{- end }}
{{- if le $lease $deadline }}
{{- fail (printf "operator.leaseDuration (%s) must be longer than operator.renewDeadline (%s)" .leaseDuration .renewDeadline) }}
{{- end }}
{{- if le (mul $deadline 10) (mul $retry 12) }}
{{- fail (printf "operator.renewDeadline (%s) must be longer than 1.2 times operator.retryPeriod (%s)" .renewDeadline .retryPeriod) }}
{{- end }}
{{- end }}
{{- $names := list }}
{{- range .Values.notifications.targets }}
{{- if has .name $names }}
{{- fail (printf "notifications.targets: two targets have the name %s: rename one" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{- range .Values.workerNamespaces }}
{{- if and (include "holdfast.runsJobs" $) $.Values.watchNamespaces (not (has . $.Values.watchNamespaces)) }}
{{- fail (printf "workerNamespaces: %s is not among watchNamespaces, so no operator works on its jobs: add it there too, or remove it from workerNamespaces" .) }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Without rights in a namespace, the operator cannot remove its finalizers from the pods and DurableJobs there. */ -}}
{{- define "holdfast.checkLeft" -}}
{{- if .new }}
{{- range .old | default (list "") }}
{{- if not (has . $.new) }}
{{- range (lookup "v1" "Pod" . "").items }}
{{- if and (has "holdfast.dev/outcome" (.metadata.finalizers | default list)) (not (has .metadata.namespace $.new)) }}
{{- fail (printf "watchNamespaces: pod %s of a job is in namespace %s and has the operator's finalizer: let the jobs there end, or delete them, before you remove the namespace from the list" .metadata.name .metadata.namespace) }}
{{- end }}
{{- end }}
{{- range (lookup "holdfast.dev/v1alpha1" "DurableJob" . "").items }}
{{- if and (has "holdfast.dev/outbox" (.metadata.finalizers | default list)) (not (has .metadata.namespace $.new)) }}
{{- fail (printf "watchNamespaces: DurableJob %s is in namespace %s and has the operator's finalizer: wait until its targets are told, or delete its Job and wait until it is gone, before you remove the namespace from the list" .metadata.name .metadata.namespace) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Kubernetes deletes a pod 15 s after it has marked the node, not after 5 minutes. */ -}}
{{- define "holdfast.tolerations" -}}
{{- range list "not-ready" "unreachable" }}
- {key: node.kubernetes.io/{{ . }}, operator: Exists, effect: NoExecute, tolerationSeconds: 15}
{{- end }}
{{- with .Values.tolerations }}{{ toYaml . | nindent 0 }}{{ end }}
{{- end -}}

{{- define "holdfast.milliseconds" -}}
{{- $number := regexFind "^[0-9]+" . | int -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- mul $number (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit) -}}
{{- end -}}

{{- define "holdfast.name" -}}
{{- .Values.nameOverride | default .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "holdfast.labels" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* Selects the operator's pods. */ -}}
{{- define "holdfast.selector" -}}
app.kubernetes.io/name: holdfast
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "holdfast.account" -}}
{{- .Values.serviceAccount.name | default (include "holdfast.name" .) -}}
{{- end -}}

{{- define "holdfast.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Pod Security "restricted". The image sets the user; OpenShift chooses its own. A value replaces a field. */ -}}
{{- define "holdfast.podSecurity" -}}
{{- $ours := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- include "holdfast.replaced" (dict "ours" $ours "theirs" .Values.podSecurityContext) -}}
{{- end -}}

{{- define "holdfast.containerSecurity" -}}
{{- $ours := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- include "holdfast.replaced" (dict "ours" $ours "theirs" .Values.securityContext) -}}
{{- end -}}

{{- /* `merge` takes false for a field that is not set. */ -}}
{{- define "holdfast.replaced" -}}
{{- $all := .ours }}
{{- range $field, $value := .theirs }}
{{- if and (kindIs "map" $value) (hasKey $all $field) }}{{ $value = merge dict $value (get $all $field) }}{{ end }}
{{- $_ := set $all $field $value }}
{{- end }}
{{- toYaml $all -}}
{{- end -}}

{{- /* Those of the values select the operator's pods, unless they select others. */ -}}
{{- define "holdfast.spread" -}}
{{- $selector := dict "matchLabels" (include "holdfast.selector" . | fromYaml) }}
{{- range .Values.topologySpreadConstraints }}
{{- $constraint := merge dict . }}
{{- if not .labelSelector }}{{ $_ := set $constraint "labelSelector" $selector }}{{ end }}
{{ list $constraint | toYaml }}
{{- end }}
{{- end -}}

{{- /* The operator's rights in each namespace whose jobs it works on. */ -}}
{{- define "holdfast.jobRules" -}}
{{- /* patch: for the finalizer of a job of a batch/v1 Job, which stays when batchJobs is switched off. */}}
- {apiGroups: [holdfast.dev], resources: [durablejobs], verbs: [get, list, watch, patch, delete]}
- {apiGroups: [holdfast.dev], resources: [durablejobs/status, jobqueues/status, workerpools/status], verbs: [update]}
- {apiGroups: [holdfast.dev], resources: [jobqueues, workerpools], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [podtemplates], verbs: [create]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [get, create, patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch]}
{{- if .Values.batchJobs.enabled }}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch]}
- {apiGroups: [batch], resources: [jobs/status], verbs: [update]}
- {apiGroups: [holdfast.dev], resources: [durablejobs], verbs: [create]}
{{- end }}
{{- end -}}

{{- /* Not empty: the operator works on jobs. */ -}}
{{- define "holdfast.runsJobs" -}}
{{- if ne .Values.rescue.mode "observe" }}true{{ end }}
{{- end -}}

{{- /* To free pods of other controllers. The node's Lease is read in every mode. */ -}}
{{- define "holdfast.rescueRules" -}}
- {apiGroups: [""], resources: [pods], verbs: [list, watch, delete]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [get, create, patch]}
{{- end -}}

{{- /* The value of --batch-jobs. */ -}}
{{- define "holdfast.batchJobs" -}}
{{- $terms := list }}
{{- range $key, $value := .Values.batchJobs.namespaceSelector }}{{ $terms = append $terms (printf "%s=%s" $key $value) }}{{ end }}
{{- $terms | join "," | default "all" }}
{{- end -}}

{{- /* Metadata of objects that exist only while Helm deletes the release. */ -}}
{{- define "holdfast.hook" -}}
labels: {{- include "holdfast.labels" . | nindent 2 }}
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{- /* The operator's file of targets: operator/notify/targets.h. */ -}}
{{- define "holdfast.targets" -}}
{{- $folder := "/etc/holdfast/notifications" }}
{{- $targets := list }}
{{- range .Values.notifications.targets }}
{{- $target := dict "name" .name "url" .url "secretFile" (printf "%s/%s/secret" $folder .name) }}
{{- if .caRef }}{{ $_ := set $target "caFile" (printf "%s/%s/ca.crt" $folder .name) }}{{ end }}
{{- with .namespaces }}{{ $_ := set $target "namespaces" . }}{{ end }}
{{- with .events }}{{ $_ := set $target "events" . }}{{ end }}
{{- with .allowedCIDRs }}{{ $_ := set $target "allowedCIDRs" . }}{{ end }}
{{- $targets = append $targets $target }}
{{- end }}
{{- dict "source" .Values.notifications.source "targets" $targets | toJson }}
{{- end -}}
