package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Dashboard has the parts of a Grafana dashboard that matter here.
type Dashboard struct {
	Name  string `json:"-"`
	UID   string `json:"uid"`
	Title string `json:"title"`
	Links []Link `json:"links"`

	Templating struct {
		List []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"list"`
	} `json:"templating"`
	Panels []Panel `json:"panels"`
}

// Panel is one panel.
type Panel struct {
	ID          int      `json:"id"`
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	GridPos     GridPos  `json:"gridPos"`
	Targets     []Target `json:"targets"`
	Links       []Link   `json:"links"`

	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

// GridPos is the position of a panel in a grid of 24 columns.
type GridPos struct{ X, Y, W, H int }

// Target is a query of a panel.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// Link is a link in a dashboard or panel.
type Link struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// Dashboards reads the dashboards of a folder.
func Dashboards(dir string) ([]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no dashboards in %s: %w", dir, err)
	}
	all := make([]Dashboard, len(files))
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(content, &all[i])
		}
		if err != nil {
			return nil, fmt.Errorf("read dashboard %s: %w", file, err)
		}
		all[i].Name = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return all, nil
}

// Query returns the target's expression with Grafana's variables filled in: all
// namespaces, and rates over the given time.
func (t Target) Query(over time.Duration) string {
	return strings.NewReplacer("$namespace", ".*", "$__rate_interval", over.String()).Replace(t.Expr)
}
