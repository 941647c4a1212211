package main

import (
	"bytes"
	"context"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/trawl-search/trawl/tools/metrics"
)

// Sizes of a page, in pixels.
const (
	width    = 1600
	column   = width / 24
	row      = 34
	headRoom = 64
)

// over is what $__rate_interval is here: four scrapes and more.
const over = 30 * time.Second

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html><meta charset="utf-8"><title>{{.Title}}</title>
<style>
body { margin: 0; background: #111217; color: #ccccdc; font: 12px "DejaVu Sans", sans-serif; position: relative; }
h1 { font-size: 18px; margin: 0; padding: 14px 12px 2px; font-weight: normal; }
.sub { padding: 0 12px; color: #8e8ea0; }
.panel { position: absolute; background: #181b1f; border: 1px solid #2c3235; border-radius: 3px; box-sizing: border-box; padding: 6px 8px; overflow: hidden; }
.title { font-size: 13px; } .value { font-size: 34px; text-align: center; padding-top: 12px; }
.legend { color: #b0b0c0; font-size: 11px; line-height: 15px; } .legend i { display: inline-block; width: 12px; height: 3px; margin: 0 4px 3px 0; }
.legend span { margin-right: 12px; white-space: nowrap; }
</style><h1>{{.Title}}</h1><div class="sub">{{.Span}}</div>
{{range .Panels}}<div class="panel" style="left:{{.X}}px;top:{{.Y}}px;width:{{.W}}px;height:{{.H}}px"><div class="title">{{.Title}}</div>
{{if .Value}}<div class="value" style="color:{{.Color}}">{{.Value}}</div>{{else}}{{.Drawing}}<div class="legend">{{range .Legend}}<span><i style="background:{{.Color}}"></i>{{.Name}}</span>{{end}}</div>{{end}}</div>
{{end}}`))

type view struct {
	Title, Span string
	Panels      []panelView
}

type panelView struct {
	Title, Value, Color string
	X, Y, W, H          int
	Drawing             template.HTML
	Legend              []entry
}

type entry struct{ Name, Color string }

// page draws a dashboard, and says how high it is.
func page(ctx context.Context, store *metrics.Store, board metrics.Dashboard, from, to time.Time) (html []byte, height int, err error) {
	v := view{Title: board.Title, Span: from.UTC().Format("2006-01-02 15:04:05") + " to " + to.UTC().Format("15:04:05 MST") + ", rates over " + over.String()}
	for _, p := range board.Panels {
		drawn, err := panel(ctx, store, p, from, to)
		if err != nil {
			return nil, 0, err
		}
		v.Panels = append(v.Panels, drawn)
		height = max(height, drawn.Y+drawn.H+8)
	}
	var out bytes.Buffer
	err = pageTemplate.Execute(&out, v)
	return out.Bytes(), height, err
}

func panel(ctx context.Context, store *metrics.Store, p metrics.Panel, from, to time.Time) (panelView, error) {
	v := panelView{Title: p.Title, X: p.GridPos.X*column + 8, Y: p.GridPos.Y*row + headRoom, W: p.GridPos.W*column - 8, H: p.GridPos.H*row - 8}
	var all []line
	for _, target := range p.Targets {
		matrix, err := store.Range(ctx, target.Query(over), from, to, scrapeEvery)
		if err != nil {
			return v, err
		}
		for _, s := range matrix {
			all = append(all, line{name: legend(target.LegendFormat, s), points: s.Floats})
		}
	}
	unit := p.FieldConfig.Defaults.Unit
	if p.Type == "stat" {
		v.Value, v.Color = "no data", "#8e8ea0"
		if len(all) > 0 {
			last := all[0].points[len(all[0].points)-1].F
			v.Value, v.Color = format(last, unit), "#73bf69"
			for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
				if last >= step.Value {
					v.Color = colors[step.Color]
				}
			}
		}
		return v, nil
	}
	c := chart{unit: unit, from: from, to: to, w: v.W - 18, h: v.H - 58, stacked: p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal", most: p.FieldConfig.Defaults.Max}
	v.Drawing = template.HTML(c.draw(all)) //nolint:gosec // numbers and our own words
	for i, l := range all {
		v.Legend = append(v.Legend, entry{l.name, palette[i%len(palette)]})
	}
	return v, nil
}

var colors = map[string]string{"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c", "blue": "#5794f2"}

var palette = []string{"#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a", "#447ebc", "#c15c17"}

func legend(format string, s promql.Series) string {
	for name, value := range s.Metric.Map() {
		format = strings.ReplaceAll(format, "{{"+name+"}}", value)
	}
	return format
}

// line is one series.
type line struct {
	name   string
	points []promql.FPoint
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
