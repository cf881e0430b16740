{{- /* All sections of all pages but the contents: the page, the anchor, the heading, and the text. */ -}}
{{- $rows := slice -}}
{{- range sort (slice site.Home | append site.RegularPages) "Params.source" -}}
{{- $source := .Params.source -}}
{{- if eq (index hugo.Data.plan.pages $source).url "contents.html" }}{{ continue }}{{ end -}}
{{- range split (replaceRE `<h[1-6] id=` "\x00$0" .Content) "\x00" -}}
{{- range findRESubmatch `(?s)^<h[1-6] id="([^"]*)"[^>]*>(.*?)</h[1-6]>(.*)$` . 1 -}}
{{- $text := replaceRE `\s+` " " (index . 3 | plainify | htmlUnescape) -}}
{{- $rows = $rows | append (dict "s" $source "a" (index . 1) "h" (index . 2 | plainify | htmlUnescape | strings.TrimSpace) "t" (strings.TrimSpace $text)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $pages := dict -}}
{{- range $source, $p := hugo.Data.plan.pages }}{{ $pages = merge $pages (dict $source (slice $p.url $p.label)) }}{{ end -}}
straitIndex({{ dict "pages" $pages "sections" $rows | jsonify }});
