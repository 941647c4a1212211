package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Record is the machine-readable form of a result. It has the same name as the text, with another
// suffix.
type Record struct {
	// Stem is the path of the result without a suffix.
	Stem string `json:"-"`
	// Run says how the figures were measured.
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
	Commit  string    `json:"commit"`
	// Load is the load of the machine, over 1, 5 and 15 minutes, when the result was written.
	Load    string  `json:"load"`
	Figures Figures `json:"figures"`
}

// recordSuffix is the suffix of a record's file.
const recordSuffix = ".json"

// SaveRecord writes the figures of a run next to its result.
func SaveRecord(ctx context.Context, stem, run string, started time.Time, figures Figures) error {
	r := Record{Run: run, Started: started.UTC().Truncate(time.Second), Commit: commit(ctx), Load: load(), Figures: figures.finite()}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	if err := os.WriteFile(stem+recordSuffix, append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// Records reads all records of a folder, the newest first. Results from before records existed have
// none.
func Records(folder string) ([]Record, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*"+recordSuffix))
	if err != nil {
		return nil, fmt.Errorf("finding results: %w", err)
	}
	var all []Record
	for _, name := range names {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return nil, fmt.Errorf("reading a result: %w", err)
		}
		r := Record{Stem: strings.TrimSuffix(name, recordSuffix)}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Record) int { return b.Started.Compare(a.Started) })
	return all, nil
}
