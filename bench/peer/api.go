package peer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Options of a search. Zero values leave the choice to the server.
type Options struct {
	MaxDocDisplayCount                     int           `json:",omitempty"`
	ChunkMatches                           bool          `json:",omitempty"`
	ShardMaxMatchCount, TotalMaxMatchCount int           `json:",omitempty"`
	MaxWallTime                            time.Duration `json:",omitempty"`
	// UseBM25Scoring selects zoekt's other ranking.
	UseBM25Scoring bool `json:",omitempty"`
}

// unlimited is more matches than any corpus has.
const unlimited = 1 << 30

// Every asks for all matches to be counted and for that many files to be shown; 0 shows all.
func Every(files int) Options {
	return Options{MaxDocDisplayCount: files, ChunkMatches: files > 0, ShardMaxMatchCount: unlimited, TotalMaxMatchCount: unlimited}
}

// Early asks for the first files, up to that number, as zoekt's own page does. zoekt derives limits
// on matches from the number (calculateDefaultSearchLimits in internal/json) and stops at them,
// whether or not better files follow.
func Early(files int) Options { return Options{MaxDocDisplayCount: files, ChunkMatches: true} }

// Stats are the server's statistics of a search. Duration is by its own clock.
type Stats struct {
	Duration               time.Duration
	FileCount, MatchCount  int
	Crashes, ShardsSkipped int
}

// Reply is an undecoded answer.
type Reply struct {
	// Took is the caller's time, from the request to the last byte of the answer.
	Took time.Duration
	body []byte
}

// Stats decodes only the statistics, which precede the files: clients share the processors with the
// servers, so they should do little.
func (r *Reply) Stats() (Stats, error) {
	dec := json.NewDecoder(bytes.NewReader(r.body))
	var s Stats
	for _, want := range []json.Token{json.Delim('{'), "Result", json.Delim('{')} {
		if got, err := dec.Token(); err != nil || got != want {
			return s, fmt.Errorf("reading statistics: expected %v, found %v: %w", want, got, err)
		}
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil || key == "Files" {
			return s, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return s, fmt.Errorf("reading statistics: %w", err)
		}
		if err := s.set(key, value); err != nil {
			return s, fmt.Errorf("reading statistics: %v: %w", key, err)
		}
	}
	if _, err := dec.Token(); err != nil {
		return s, fmt.Errorf("reading statistics: %w", err)
	}
	return s, nil
}

func (s *Stats) set(key json.Token, value json.RawMessage) error {
	switch key {
	case "Duration":
		return json.Unmarshal(value, &s.Duration)
	case "FileCount":
		return json.Unmarshal(value, &s.FileCount)
	case "MatchCount":
		return json.Unmarshal(value, &s.MatchCount)
	case "Crashes":
		return json.Unmarshal(value, &s.Crashes)
	case "ShardsSkipped":
		return json.Unmarshal(value, &s.ShardsSkipped)
	}
	return nil
}

// Ranked returns the files shown, in order, as repo and path.
func (r *Reply) Ranked() ([]string, error) {
	var answer struct {
		Result struct {
			Files []struct{ Repository, FileName string }
		}
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	files := make([]string, len(answer.Result.Files))
	for i, f := range answer.Result.Files {
		files[i] = f.Repository + "/" + f.FileName
	}
	return files, nil
}

// BestLines returns the lines with matches of the first file: those of the chunk that zoekt rates highest first, and its best one before
// the others of a chunk.
func (r *Reply) BestLines() (lines []int, err error) {
	type chunk struct {
		FileName      bool
		Score         float64
		BestLineMatch int
		Ranges        []struct{ Start struct{ LineNumber int } }
	}
	var answer struct {
		Result struct {
			Files []struct{ ChunkMatches []chunk }
		}
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		return nil, fmt.Errorf("reading an answer: %w", err)
	}
	if len(answer.Result.Files) == 0 {
		return nil, nil
	}
	chunks := answer.Result.Files[0].ChunkMatches
	slices.SortStableFunc(chunks, func(a, b chunk) int { return cmp.Compare(b.Score, a.Score) })
	for _, c := range chunks {
		if c.FileName {
			continue
		}
		lines = append(lines, c.BestLineMatch)
		for _, r := range c.Ranges {
			if n := r.Start.LineNumber; !slices.Contains(lines, n) {
				lines = append(lines, n)
			}
		}
	}
	return lines, nil
}

// Files returns the files shown, as repo and path.
func (r *Reply) Files() (map[string]bool, error) {
	ranked, err := r.Ranked()
	files := make(map[string]bool, len(ranked))
	for _, f := range ranked {
		files[f] = true
	}
	return files, err
}

// Search sends one request.
func (s *Server) Search(ctx context.Context, query string, opts Options) (*Reply, error) {
	body, err := json.Marshal(map[string]any{"Q": query, "Opts": opts})
	if err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	began := time.Now()
	answer, err := s.call(ctx, http.MethodPost, "/api/search", body)
	return &Reply{Took: time.Since(began), body: answer}, err
}

// AwaitRepos waits until that many repos can be searched.
func (s *Server) AwaitRepos(ctx context.Context, repos int) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	var listed struct {
		List struct {
			Repos []json.RawMessage
			Trawl *struct{ Complete bool } // Trawl's own report on the answer
		}
	}
	for {
		answer, err := s.call(ctx, http.MethodPost, "/api/list", []byte(`{"Q": "repo:.*"}`))
		if err == nil {
			err = json.Unmarshal(answer, &listed)
		}
		if err == nil && len(listed.List.Repos) >= repos && (listed.List.Trawl == nil || listed.List.Trawl.Complete) {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended: %w", s.cmd.Path, s.err)
		case <-ctx.Done():
			return fmt.Errorf("%s loaded %d of %d repos within %s (its last answer: %.500s): %w", s.cmd.Path, len(listed.List.Repos), repos, readyTime, answer, errors.Join(err, ctx.Err()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// call sends a request and reads the answer to its end.
func (s *Server) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.HTTP+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", s.HTTP, err)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if resp.ContentLength > 0 {
		answer.Grow(int(min(resp.ContentLength, 64<<20)) + bytes.MinRead)
	}
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", s.HTTP, err)
	}
	if resp.StatusCode == http.StatusGatewayTimeout {
		return nil, fmt.Errorf("%s%s ran out of time: %w", s.HTTP, path, context.DeadlineExceeded)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s%s answered %s: %s", s.HTTP, path, resp.Status, bytes.TrimSpace(answer.Bytes()[:min(answer.Len(), 200)]))
	}
	return answer.Bytes(), nil
}
