package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used since its start.
type Usage struct {
	CPU time.Duration
	// MajorFaults counts pages of mapped files that had to be read.
	MajorFaults int64
	// ReadBytes counts bytes read from the disk, including those of major faults.
	ReadBytes int64
}

// Since returns the usage since an earlier reading.
func (u Usage) Since(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.MajorFaults - before.MajorFaults, u.ReadBytes - before.ReadBytes}
}

// Plus adds the usage of another period.
func (u Usage) Plus(o Usage) Usage {
	return Usage{u.CPU + o.CPU, u.MajorFaults + o.MajorFaults, u.ReadBytes + o.ReadBytes}
}

// Usage reads the usage of the process from /proc. Processor time is in hundredths of a second.
func (s *Server) Usage() (Usage, error) {
	dir := fmt.Sprintf("/proc/%d/", s.PID())
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return Usage{}, fmt.Errorf("reading what a server used: %w", err)
	}
	io, err := os.ReadFile(dir + "io")
	if err != nil {
		return Usage{}, fmt.Errorf("reading what a server read: %w", err)
	}
	return parseUsage(stat, io)
}

// Tick is the unit of processor time in /proc, the same on all machines.
const Tick = 10 * time.Millisecond

// parseUsage reads /proc/PID/stat and io; see proc_pid_stat(5).
func parseUsage(stat, io []byte) (u Usage, err error) {
	// The name in parentheses can contain anything; majflt, utime and stime are fields 12, 14 and
	// 15.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return u, fmt.Errorf("expected 13 fields behind the name in /proc/PID/stat, found %d", len(fields))
	}
	var numbers [3]int64
	for i, field := range []int{9, 11, 12} {
		if numbers[i], err = strconv.ParseInt(string(fields[field]), 10, 64); err != nil {
			return u, fmt.Errorf("reading /proc/PID/stat: %w", err)
		}
	}
	u.MajorFaults, u.CPU = numbers[0], time.Duration(numbers[1]+numbers[2])*Tick
	u.ReadBytes, err = labelled(io, "read_bytes:", 1)
	return u, err
}

// labelled finds a line with a label and a number in the text.
func labelled(text []byte, label string, unit int64) (int64, error) {
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == label {
			n, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, fmt.Errorf("reading %s: %w", label, err)
			}
			return int64(n) * unit, nil
		}
	}
	return 0, fmt.Errorf("%s is not in %.60q", label, text)
}

// Counters reads counters from the server's metrics, each by its name and a label. If several
// series have both, it returns their sum.
func (s *Server) Counters(ctx context.Context, series ...Series) ([]int64, error) {
	text, err := s.call(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return nil, err
	}
	values := make([]int64, len(series))
	for i, one := range series {
		if values[i], err = one.sum(text); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Series is a counter and one of its labels, as LABEL="VALUE".
type Series struct{ Name, Label string }

func (s Series) sum(text []byte) (sum int64, err error) {
	found := false
	for line := range strings.Lines(string(text)) {
		labels, ok := strings.CutPrefix(line, s.Name+"{")
		if !ok || !strings.Contains(labels, s.Label) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(labels[strings.LastIndexByte(labels, '}')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", s.Name, err)
		}
		sum, found = sum+int64(n), true
	}
	if !found {
		return 0, fmt.Errorf("no counter %s{%s} among the metrics", s.Name, s.Label)
	}
	return sum, nil
}

// Memory is the memory of a process, in bytes.
type Memory struct {
	// Anon is the process's own resident memory. File is resident pages of files, which the system
	// can drop.
	Anon, File int64
	// Heap is the least size of Go's heap while four collections end.
	Heap int64
	// Maps is the number of its memory maps.
	Maps int64
}

// Memory reads the memory of the process.
func (s *Server) Memory(ctx context.Context) (m Memory, err error) {
	if m.Heap, err = s.heap(ctx); err != nil {
		return m, err
	}
	dir := fmt.Sprintf("/proc/%d/", s.PID())
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		return m, fmt.Errorf("reading the memory of a server: %w", err)
	}
	maps, err := os.ReadFile(dir + "maps")
	if err != nil {
		return m, fmt.Errorf("reading the memory maps of a server: %w", err)
	}
	m.Maps = int64(bytes.Count(maps, []byte("\n")))
	var errs [2]error
	m.Anon, errs[0] = labelled(status, "RssAnon:", 1<<10)
	m.File, errs[1] = labelled(status, "RssFile:", 1<<10)
	return m, errors.Join(errs[:]...)
}

// collections is how many collections end before the least heap counts. Pooled memory goes with the
// second one, and what a collection frees is counted until it is swept, which takes until the next.
const collections = 4

// heap requests metrics until some collections have run. The requests make the garbage that triggers
// them.
func (s *Server) heap(ctx context.Context) (least int64, err error) {
	const most = 5000
	var first int64
	for i := range most {
		text, err := s.call(ctx, http.MethodGet, "/metrics", nil)
		if err != nil {
			return 0, err
		}
		heap, err := labelled(text, "go_memstats_heap_alloc_bytes", 1)
		if err != nil {
			return 0, err
		}
		ran, err := labelled(text, "go_gc_duration_seconds_count", 1)
		if err != nil {
			return 0, err
		}
		if i == 0 {
			first, least = ran, heap
		}
		least = min(least, heap)
		if ran >= first+collections {
			return least, nil
		}
	}
	return least, nil
}
