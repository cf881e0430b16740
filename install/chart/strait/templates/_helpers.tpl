{{- /* Labels of objects. Those of the chart change with every release, so pods have only strait.podLabels: a release that
changes nothing in them restarts none. Helm says that it manages the objects; strait install and plain manifests do not. */ -}}
{{- define "strait.labels" -}}
{{- $labels := dict "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- with .Release.Service }}{{ $_ := set $labels "app.kubernetes.io/managed-by" . }}{{ end -}}
{{- toYaml (mergeOverwrite $labels (include "strait.podLabels" . | fromYaml)) }}
{{- end }}

{{- define "strait.podLabels" -}}
app.kubernetes.io/name: strait
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: strait
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The labels of an object that a program outside strait finds by labels of its own. */ -}}
{{- define "strait.monitoringLabels" -}}
{{- toYaml (mergeOverwrite (include "strait.labels" .root | fromYaml) (deepCopy .labels)) }}
{{- end }}

{{- define "strait.image" -}}
{{- $i := .Values.image -}}
{{- if $i.digest }}{{ $i.repository }}@{{ $i.digest }}
{{- else }}{{ $i.repository }}:{{ $i.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* Whose word counts: auto, pinned or off. YAML takes off without quotes for false. */ -}}
{{- define "strait.authority" -}}
{{- $a := .Values.authority -}}
{{- $mode := printf "%v" $a.mode -}}
{{- if kindIs "invalid" $a.mode }}{{ $mode = "auto" }}{{ else if eq $mode "false" }}{{ $mode = "off" }}{{ end -}}
{{- if not (has $mode (list "auto" "pinned" "off")) }}{{ fail (printf "authority.mode: %q is invalid: use auto, pinned or off" $mode) }}{{ end -}}
{{- if and $a.pin (kindIs "bool" $a.sign) (not $a.sign) }}{{ fail "authority.pin: needs authority.sign: a cluster that believes only what is signed must sign, too" }}{{ end -}}
{{- if eq $mode "auto" -}}
{{- if $a.pin }}{{ $mode = "pinned" }}{{ else if and (kindIs "bool" $a.sign) (not $a.sign) }}{{ $mode = "off" }}{{ end -}}
{{- end -}}
{{- $mode -}}
{{- end }}

{{- /* Whether the leader makes keys: strait-own-keys must keep its account to those. */ -}}
{{- define "strait.makesKeys" -}}
{{- if and (eq (include "strait.authority" .) "auto") .Values.ownWritesPolicy }}yes{{ end -}}
{{- end }}

{{- /* Whether the leader makes the token of strait-view. */ -}}
{{- define "strait.makesViewToken" -}}
{{- if and (include "strait.makesKeys" .) .Values.view.enabled .Values.view.makeToken }}yes{{ end -}}
{{- end }}

{{- /* The user and group of the pods of strait-view, which may ask the daemon of their node. */ -}}
{{- define "strait.viewGroup" -}}65532{{- end }}

{{- /* The daemon's configuration, docs/configuration.md. */ -}}
{{- define "strait.config" -}}
{{- $v := .Values -}}
{{- $kubernetes := dict "namespace" .Release.Namespace "leaderDir" "/run/strait/leader" "clusterSetIPs" $v.clusterSetIPs "importSlices" $v.importSlices -}}
{{- if ne $v.derivedPrefix "derived-" }}{{ $_ := set $kubernetes "derivedPrefix" $v.derivedPrefix }}{{ end -}}
{{- with $v.barredNamespaces }}{{ $_ := set $kubernetes "barredNamespaces" . }}{{ end -}}
{{- with $v.acceptConfigFrom }}{{ $_ := set $kubernetes "acceptConfigFrom" . }}{{ end -}}
{{- $bpf := dict "pins" $v.bpf.pins -}}
{{- with $v.cgroup.path }}{{ $_ := set $bpf "cgroup" . }}{{ end -}}
{{- if $v.cgroup.allowVirtualRoot }}{{ $_ := set $bpf "allowVirtualRoot" true }}{{ end -}}
{{- if $v.cgroup.belowRoot }}{{ $_ := set $bpf "belowRoot" true }}{{ end -}}
{{- if not $v.bpf.destroySockets }}{{ $_ := set $bpf "destroySockets" false }}{{ end -}}
{{- $mesh := dict "mode" $v.mesh.mode -}}
{{- if eq $v.mesh.mode "wireguard" -}}
{{- $_ := set $mesh "implementation" $v.mesh.implementation -}}
{{- $_ := set $mesh "device" $v.mesh.device -}}
{{- $_ := set $mesh "port" (int $v.mesh.port) -}}
{{- with $v.mesh.mtu }}{{ $_ := set $mesh "mtu" (int .) }}{{ end -}}
{{- if eq $v.mesh.implementation "userspace" }}{{ $_ := set $mesh "tunnel" "external" }}{{ end -}}
{{- end -}}
{{- $c := dict
  "source" (dict "kubernetes" $kubernetes)
  "bpf" $bpf
  "gossip" (dict
    "bind" (printf "0.0.0.0:%d" (int $v.gossip.port))
    "keyFile" "/etc/strait/clusterset/gossip.key"
    "seedsFile" "/etc/strait/clusterset/seeds")
  "mesh" $mesh
  "metrics" (dict "listen" $v.metrics.listen)
  "log" $v.log -}}
{{- $authority := dict "pinsFile" "/etc/strait/authority/pins.yaml" "tokenFile" "/etc/strait/authority/token" -}}
{{- $mode := include "strait.authority" . -}}
{{- if eq $mode "off" }}{{ $authority = dict "mode" "off" }}{{ end -}}
{{- if eq $mode "auto" }}{{ $_ := set $authority "believeFile" "/etc/strait/authority/believe" }}{{ end -}}
{{- if ne $mode "off" }}{{ $_ := set $authority "membersDir" "/etc/strait-members" }}{{ end -}}
{{- if include "strait.makesKeys" . }}{{ $_ := set $authority "publish" "strait-this-cluster" }}{{ end -}}
{{- if include "strait.makesKeys" . }}{{ $_ := set $authority "make" (dict "secret" $v.authority.secret "pins" $v.authority.configMap "believe" "strait-believe") }}{{ end -}}
{{- if include "strait.makesViewToken" . }}{{ $_ := set $authority.make "view" "strait-view" }}{{ end -}}
{{- $_ := set $c "authority" $authority -}}
{{- if $v.view.enabled }}{{ $_ := set $c "viewGroup" (include "strait.viewGroup" . | int) }}{{ end -}}
{{- with $v.cluster }}{{ $_ := set $c "cluster" . }}{{ end -}}
{{- with $v.clusterSetCIDRs }}{{ $_ := set $c "clustersetCIDRs" . }}{{ end -}}
{{- with $v.dns.listen }}{{ $_ := set $c "dns" $v.dns }}{{ end -}}
{{- $c = mergeOverwrite $c (deepCopy $v.config) -}}
{{- if and (kindIs "map" $c.metrics) (kindIs "bool" $c.metrics.listen) (not $c.metrics.listen) }}{{ $_ := set $c.metrics "listen" "off" }}{{ end -}}
{{- toYaml $c }}
{{- end }}

{{- /* The namespaces that the daemon's configuration bars, whichever value says so, as regular expressions in JSON. It refuses the
patterns that the daemon refuses (clustermesh.Barred): those that would mean something else as a regular expression, or are invalid. */ -}}
{{- define "strait.barred" -}}
{{- $barred := list "^(kube-system|kube-public|kube-node-lease)$" -}}
{{- $source := (include "strait.config" . | fromYaml).source | default dict -}}
{{- $patterns := ($source.kubernetes | default dict).barredNamespaces | default list -}}
{{- if not (kindIs "slice" $patterns) }}{{ fail (printf "barredNamespaces: %v is not a list of patterns: write [%v]" $patterns $patterns) }}{{ end -}}
{{- range $patterns -}}
{{- if not (and (kindIs "string" .) (regexMatch `^([^][\\]|\[\^?([a-z0-9](-[a-z0-9])?)+\])+$` (printf "%v" .))) }}{{ fail (printf "barredNamespaces: %q: write a name (in quotes if it is a number), or a pattern such as team-*, which can have *, ?, and letters and digits in brackets: [a-z], [^a-z]" (printf "%v" .)) }}{{ end -}}
{{- $pattern := regexQuoteMeta . | replace "\\*" ".*" | replace "\\?" "." | replace "\\[\\^" "[^" | replace "\\[" "[" | replace "\\]" "]" -}}
{{- if not (regexMatch (printf "^$|%s" $pattern) "") }}{{ fail (printf "barredNamespaces: %q: a range in brackets is empty: write the lower end first, as in [a-c]" .) }}{{ end -}}
{{- $barred = append $barred (printf "^%s$" $pattern) -}}
{{- end -}}
{{- toJson $barred -}}
{{- end }}

{{- /* The types of Services that strait's account may write. */ -}}
{{- define "strait.types" -}}
{{- $types := list "ClusterIP" -}}
{{- $more := .Values.exposeAs | default list -}}
{{- if not (kindIs "slice" $more) }}{{ fail (printf "exposeAs: %v is not a list of types: write [%v]" $more $more) }}{{ end -}}
{{- range $more -}}
{{- if not (has . (list "NodePort" "LoadBalancer")) }}{{ fail (printf "exposeAs: %q is invalid: use NodePort, LoadBalancer or both" (printf "%v" .)) }}{{ end -}}
{{- $types = append $types . -}}
{{- end -}}
{{- toJson $types -}}
{{- end }}

{{- /* The clusters whose configuration the daemon accepts, whichever value says so, in JSON. */ -}}
{{- define "strait.configFrom" -}}
{{- $source := (include "strait.config" . | fromYaml).source | default dict -}}
{{- $from := ($source.kubernetes | default dict).acceptConfigFrom | default list -}}
{{- if not (kindIs "slice" $from) }}{{ fail (printf "acceptConfigFrom: %v is not a list of clusters: write [%v]" $from $from) }}{{ end -}}
{{- range $from -}}
{{- if not (and (kindIs "string" .) (regexMatch "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" (printf "%v" .))) }}{{ fail (printf "acceptConfigFrom: %q is not the id of a cluster: use lower-case letters, digits and '-', in quotes if it is a number" (printf "%v" .)) }}{{ end -}}
{{- end -}}
{{- toJson $from -}}
{{- end }}

{{- /* Where the daemon serves metrics and answers probes, whichever value says so: ADDRESS:PORT, or empty if nowhere. YAML takes off
without quotes for false. */ -}}
{{- define "strait.metricsListen" -}}
{{- $listen := printf "%v" ((include "strait.config" . | fromYaml).metrics | default dict).listen -}}
{{- if ne $listen "off" -}}
{{- if not (regexMatch "^([0-9.]+|\\[[0-9a-fA-F:.]+\\]):[1-9][0-9]*$" $listen) }}{{ fail (printf "metrics.listen: %q is neither off nor an address and port, such as 127.0.0.1:9964" $listen) }}{{ end -}}
{{- $listen -}}
{{- end -}}
{{- end }}

{{- /* The port in ADDRESS:PORT. */ -}}
{{- define "strait.portOf" }}{{ regexReplaceAll "^.*:" . "" }}{{ end }}

{{- /* A probe of a path at $.listen. The pod has the host's network, so the kubelet reaches 127.0.0.1. */ -}}
{{- define "strait.probe" -}}
httpGet:
  {{- $host := regexReplaceAll ":[0-9]+$" .listen "" | replace "[" "" | replace "]" "" }}
  host: {{ if has $host (list "0.0.0.0" "::") }}127.0.0.1{{ else }}{{ $host | quote }}{{ end }}
  port: {{ include "strait.portOf" .listen | int }}
  path: {{ .path }}
{{- end }}

{{- /* Checks that a PodMonitor is not in vain: the daemon listens where Prometheus reaches it. */ -}}
{{- define "strait.metrics" -}}
{{- $m := .Values.metrics -}}
{{- range list "podMonitor" "prometheusRule" "dashboards" -}}
{{- $labels := (index $m .).labels -}}
{{- if not (kindIs "map" $labels) }}{{ fail (printf "metrics.%s.labels: %v is not a table of labels" . $labels) }}{{ end -}}
{{- end -}}
{{- $listen := include "strait.metricsListen" . -}}
{{- if $m.podMonitor.enabled -}}
{{- if or (not $listen) (regexMatch "^(127\\.|\\[::1\\])" $listen) }}{{ fail (printf "metrics.podMonitor.enabled: Prometheus cannot reach daemons whose metrics.listen is %s: set that to 0.0.0.0:9964 or [::]:9964, and protect the port with a firewall" ($listen | default "off")) }}{{ end -}}
{{- if not (regexMatch "^([0-9]+(ms|s|m|h))+$" (printf "%v" $m.podMonitor.interval)) }}{{ fail (printf "metrics.podMonitor.interval: %v is not a time such as 30s" $m.podMonitor.interval) }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* Checks the values before anything is created. */ -}}
{{- define "strait.check" -}}
{{- $v := .Values -}}
{{- if not (has $v.mesh.mode (list "wireguard" "off")) }}{{ fail (printf "mesh.mode: %q is invalid: use wireguard or off" $v.mesh.mode) }}{{ end -}}
{{- if not (has $v.mesh.implementation (list "kernel" "userspace")) }}{{ fail (printf "mesh.implementation: %q is invalid: use kernel or userspace" $v.mesh.implementation) }}{{ end -}}
{{- if not (has $v.clusterSetIPs (list "derived" "cidr")) }}{{ fail (printf "clusterSetIPs: %q is invalid: use derived or cidr" $v.clusterSetIPs) }}{{ end -}}
{{- if not (regexMatch "^([a-z][a-z0-9-]{0,50})?$" (printf "%v" $v.derivedPrefix)) }}{{ fail (printf "derivedPrefix: %q cannot begin the name of a Service: use at most 51 lower-case letters, digits and '-', starting with a letter" (printf "%v" $v.derivedPrefix)) }}{{ end -}}
{{- if not (regexMatch "^(sha256:[0-9a-f]{64})?$" (printf "%v" ($v.image.digest | default ""))) }}{{ fail (printf "image.digest: %q is not a digest: want sha256: and 64 hexadecimal digits, as make image and registries print it" (printf "%v" $v.image.digest)) }}{{ end -}}
{{- if not (has $v.importSlices (list "all" "headless" "none")) }}{{ fail (printf "importSlices: %q is invalid: use all, headless or none" $v.importSlices) }}{{ end -}}
{{- if not (or (kindIs "string" $v.cluster) (kindIs "invalid" $v.cluster)) }}{{ fail (printf "cluster: %v is not text: write it in quotes, or with Helm use --set-string cluster=%v" $v.cluster $v.cluster) }}{{ end -}}
{{- if and $v.cluster (not (regexMatch "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" $v.cluster)) }}{{ fail (printf "cluster: %q is not a DNS label: use lower-case letters, digits and '-', at most 63" $v.cluster) }}{{ end -}}
{{- $_ := include "strait.metrics" . -}}
{{- $_ := include "strait.types" . -}}
{{- $_ := include "strait.configFrom" . -}}
{{- $_ := include "strait.barred" . -}}
{{- end }}

{{- /* What both DaemonSets share. */ -}}
{{- define "strait.pod" -}}
serviceAccountName: {{ .account }}
hostNetwork: true
# The node's own resolver, because the cluster's DNS can depend on strait.
dnsPolicy: Default
{{ include "strait.where" (dict "root" .root "nodeSelector" .root.Values.nodeSelector) }}
tolerations:
  {{- toYaml .root.Values.tolerations | nindent 2 }}
{{- end }}

{{- /* Where pods run. Those of strait-leader run where daemons do. */ -}}
{{- define "strait.where" -}}
priorityClassName: {{ .root.Values.priorityClassName }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity | default .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Whether the cluster is OpenShift, whose SecurityContextConstraints decide what pods may do. */ -}}
{{- define "strait.openshift" -}}
{{- $set := .Values.openshift.securityContextConstraints -}}
{{- if kindIs "invalid" $set }}{{ if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}yes{{ end }}{{ else if $set }}yes{{ end -}}
{{- end }}

{{- /* The annotation by which pods get the constraints of their account, if they have others too. */ -}}
{{- define "strait.sccOf" -}}
{{- if include "strait.openshift" .root }}openshift.io/required-scc: {{ .account }}{{ end }}
{{- end }}

{{- /* The SELinux label of containers. On OpenShift, SELinux is enforced. */ -}}
{{- define "strait.seLinux" -}}
{{- with .Values.seLinuxOptions }}{{ toYaml . }}{{ else }}{{ if include "strait.openshift" . }}type: spc_t{{ end }}{{ end }}
{{- end }}

{{- /* How the node's AppArmor and SELinux confine a container. */ -}}
{{- define "strait.confinement" -}}
# On nodes with AppArmor (Ubuntu, Debian), the runtimes' default profile denies mounts, access to processes of other
# profiles, and all writes below /sys/fs except to cgroups, whatever the capabilities are. Nothing could be pinned.
appArmorProfile:
  type: Unconfined
{{- with include "strait.seLinux" . }}
seLinuxOptions:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
