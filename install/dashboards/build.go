package main

//lint:file-ignore SA1019 In Grafana 12, version 2 of the format is experimental; later ones load version 1 as well.

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// page is a dashboard.
type page struct {
	name, title, description string
	// choices are the labels that a reader can choose values of. In queries, @ stands for what that selects.
	choices []choice
	rows    []row
}

// choice is a label, and the metric whose values of it there are.
type choice struct{ label, title, metric string }

// row is a heading and the panels below it.
type row struct {
	title  string
	panels []panel
}

// kind is how a panel shows its queries.
type kind int

const (
	series kind = iota // lines over time
	number             // what is now, as one number for each series
	name               // likewise, as the series' name
	list               // what is now, as a table
	matrix             // what is now, as a table of the first label by the second
)

// panel asks queries. Of 24 units, it is wide as many as width.
type panel struct {
	kind               kind
	title, description string
	unit               string
	width              uint32
	queries            []query
	// labels are those of a list's columns, or of a matrix's rows and columns.
	labels []string
	// bad is from where a number is shown as bad; 0 is never.
	bad float64
}

// query is an expression, and the name of each of its series.
type query struct{ expr, legend string }

const height = 8

// source is the data source that the reader chooses.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

func (p page) build() (dashboard.Dashboard, error) {
	b := dashboard.NewDashboardBuilder(p.title).Uid("strait-"+p.name).Description(p.description).Tags([]string{"strait"}).
		Time("now-1h", "now").Refresh("1m").Timezone(common.TimeZoneBrowser).Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("strait").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"strait"}).
			AsDropdown(true).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus"))
	var selected []string
	for _, c := range p.choices {
		b.WithVariable(c.variable())
		selected = append(selected, c.label+`=~"$`+c.label+`"`)
	}
	for _, r := range p.rows {
		b.WithRow(dashboard.NewRowBuilder(r.title))
		for _, panel := range r.panels {
			b.WithPanel(panel.build(strings.Join(selected, ",")))
		}
	}
	return b.Build()
}

// variable is the list of values to choose from. All also means series without the label: a
// Prometheus that scrapes one cluster has no label cluster.
func (c choice) variable() *dashboard.QueryVariableBuilder {
	all := dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")}
	return dashboard.NewQueryVariableBuilder(c.label).Label(c.title).Datasource(source()).
		Query(dashboard.StringOrMap{String: cog.ToPtr("label_values(" + c.metric + ", " + c.label + ")")}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{Text: dashboard.StringOrArrayOfString{String: cog.ToPtr("All")}, Value: all})
}

func (p panel) build(selected string) cog.Builder[dashboard.Panel] {
	var targets []cog.Builder[variants.Dataquery]
	for i, q := range p.queries {
		t := prometheus.NewDataqueryBuilder().Expr(strings.ReplaceAll(q.expr, "@", selected)).LegendFormat(q.legend).RefId(string(rune('A' + i)))
		switch p.kind {
		case series:
			t.Range()
		case list, matrix:
			t.Instant().Format(prometheus.PromQueryFormatTable)
		default:
			t.Instant()
		}
		targets = append(targets, t)
	}
	switch p.kind {
	case series:
		return timeseries.NewPanelBuilder().Title(p.title).Description(p.description).Unit(p.unit).Span(p.width).Height(height).
			Datasource(source()).Targets(targets).Min(0).FillOpacity(10).ShowPoints(common.VisibilityModeNever).
			Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
			Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true))
	case list, matrix:
		return p.table(targets)
	}
	mode := common.BigValueTextModeAuto
	if p.kind == name {
		mode = common.BigValueTextModeName
	}
	return stat.NewPanelBuilder().Title(p.title).Description(p.description).Unit(p.unit).Span(p.width).Height(height / 2).
		Datasource(source()).Targets(targets).TextMode(mode).GraphMode(common.BigValueGraphModeNone).Thresholds(p.thresholds()).
		Orientation(common.VizOrientationAuto).ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// thresholds colour what is bad.
func (p panel) thresholds() *dashboard.ThresholdsConfigBuilder {
	steps := []dashboard.Threshold{{Color: "green"}}
	if p.bad > 0 {
		steps = append(steps, dashboard.Threshold{Color: "red", Value: cog.ToPtr(p.bad)})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// table shows labels and the value, without the time of each.
func (p panel) table(targets []cog.Builder[variants.Dataquery]) cog.Builder[dashboard.Panel] {
	b := table.NewPanelBuilder().Title(p.title).Description(p.description).Unit(p.unit).Span(p.width).Height(height).
		Datasource(source()).Targets(targets).Thresholds(p.thresholds())
	if p.bad > 0 {
		b.OverrideByFieldType("number", []dashboard.DynamicConfigValue{{Id: "custom.cellOptions", Value: map[string]any{"type": "color-background"}}})
	}
	if p.kind == matrix {
		return b.WithTransformation(dashboard.DataTransformerConfig{Id: "groupingToMatrix", Options: map[string]any{
			"rowField": p.labels[0], "columnField": p.labels[1], "valueField": "Value",
		}})
	}
	order := map[string]any{}
	for i, label := range append(p.labels, "Value") {
		order[label] = i
	}
	return b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"excludeByName": map[string]any{"Time": true}, "indexByName": order,
	}})
}
