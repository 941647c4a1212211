package format

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// cutWhileOpen opens a shard of many pages and truncates its file.
func cutWhileOpen(t *testing.T, size int64) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.trawl")
	data := write(t, written{TagUnits, Required, make([]byte, 1<<20)})
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGuardOfACutFile(t *testing.T) {
	f := cutWhileOpen(t, 128<<10)
	s, _ := f.Section(TagUnits)
	for i := range 2 { // a fault must not leave anything behind
		err := f.Guard(func() error {
			_, err := s.Bytes(512<<10, 100)
			return err
		})
		var c *CorruptError
		if !errors.As(err, &c) || c.Section != "UNIT" || c.File != f.Name() || c.Offset < 128<<10 {
			t.Fatalf("read %d: %v", i, err)
		}
	}
	checkCorrupt(t, "verify", f.Verify(t.Context()))
}

// TestGuardWithoutContents truncates the file to nothing.
func TestGuardWithoutContents(t *testing.T) {
	f := cutWhileOpen(t, 0)
	checkCorrupt(t, "verify", f.Verify(t.Context()))
}

func TestGuardPassesOn(t *testing.T) {
	wrong := errors.New("wrong")
	data, _ := sample(t)
	f, err := NewFile("test", data)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Guard(func() error { return wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	other := cutWhileOpen(t, 0)
	var nobody *File
	for name, fn := range map[string]func() error{
		"panic":                  func() error { panic("own") },
		"nil pointer":            func() error { _ = nobody.name; return nil },
		"fault of another shard": func() error { return other.checkHeader(other.data[:HeaderSize]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not go on", name)
				}
			}()
			t.Errorf("%s: %v", name, f.Guard(fn))
		}()
	}
	if debug.SetPanicOnFault(false) {
		t.Error("faults stay panics")
	}
}

func TestOpenFile(t *testing.T) {
	data, sections := sample(t)
	path := filepath.Join(t.TempDir(), "test.trawl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := f.Section(TagLines)
	got, err := s.All()
	if err != nil || string(got) != string(sections[3].data) || f.Name() != path || f.Size() != int64(len(data)) {
		t.Errorf("%d bytes of %s, %v", len(got), f.Name(), err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, size := range []int{0, 1, len(data) - 1} {
		if err := os.WriteFile(path, data[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenFile(path)
		checkCorrupt(t, "open", err)
	}
}
