package metrics

import (
	"fmt"
	"os"
	"time"

	"gopkg.in/yaml.v3"
)

// Alert is an alerting rule.
type Alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         Duration          `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// Duration is a duration as rules write it.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// Alerts reads the alerts from a file of rule groups. Unknown fields are errors.
func Alerts(file string) (all []Alert, err error) {
	content, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	defer content.Close()
	var groups struct {
		Groups []struct {
			Name  string  `yaml:"name"`
			Rules []Alert `yaml:"rules"`
		} `yaml:"groups"`
	}
	decoder := yaml.NewDecoder(content)
	decoder.KnownFields(true)
	if err := decoder.Decode(&groups); err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all, nil
}
