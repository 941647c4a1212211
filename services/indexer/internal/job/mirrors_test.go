package job

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func open(t *testing.T, dir string, budget int64) *Mirrors {
	t.Helper()
	c, err := OpenMirrors(dir, budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func fill(t *testing.T, dir string, size int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pack"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
}

func there(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

func TestBudget(t *testing.T) {
	c := open(t, t.TempDir(), 250)
	a, releaseA := c.Use("a", "u", 1)
	fill(t, a, 100)
	b, releaseB := c.Use("b", "u", 1)
	fill(t, b, 100)
	releaseA()
	releaseB()
	if !there(a) || !there(b) {
		t.Fatal("removed within the budget")
	}
	again, releaseA := c.Use("a", "u", 1)
	if again != a {
		t.Errorf("another folder: %s, %s", again, a)
	}
	other, releaseOther := c.Use("a", "other", 1)
	if other == a {
		t.Error("two URLs share a mirror")
	}
	fill(t, other, 100)
	releaseOther()
	if there(b) || !there(a) || !there(other) {
		t.Errorf("a %v, b %v, other %v: want b gone, which is unused for longest", there(a), there(b), there(other))
	}
	fill(t, a, 1000)
	releaseA()
	releaseA() // once more counts once
	if there(a) || there(other) {
		t.Errorf("a %v, other %v: want both gone, a alone is over the budget", there(a), there(other))
	}
}

func TestMirrorsInUseStay(t *testing.T) {
	c := open(t, t.TempDir(), 10)
	a, releaseA := c.Use("a", "u", 1)
	fill(t, a, 100)
	b, releaseB := c.Use("b", "u", 1)
	fill(t, b, 100)
	releaseB()
	if !there(a) || there(b) {
		t.Errorf("a %v, b %v: want a, in use, to stay", there(a), there(b))
	}
	releaseA()
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, 1000)
	a, release := c.Use("a", "u", 1)
	fill(t, a, 100)
	release()
	left := filepath.Join(c.TempDir(), "left")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMirrors(dir, 1000); !errors.Is(err, ErrMirrorsInUse) {
		t.Errorf("a second process: %v", err)
	}
	c.Close()
	c = open(t, dir, 50)
	if there(left) {
		t.Error("temporary files stay")
	}
	_, release = c.Use("b", "u", 1)
	release()
	if there(a) {
		t.Error("mirrors of an earlier process do not count")
	}
}

// TestMirrorsAreAccountedFor: whatever is used, released and swept, in any order, mirrors that nobody uses wait in the order of their last use,
// and those that stay are counted once.
func TestMirrorsAreAccountedFor(t *testing.T) {
	dir, rnd := t.TempDir(), rand.New(rand.NewPCG(1, 1))
	c := open(t, dir, 300)
	var releases []func()
	for range 500 {
		switch rnd.IntN(6) {
		case 0, 1, 2:
			folder, release := c.Use(string(rune('a'+rnd.IntN(8))), "u", 1)
			fill(t, folder, 1+rnd.IntN(100))
			releases = append(releases, release)
		case 3, 4:
			if n := len(releases); n > 0 {
				i := rnd.IntN(n)
				releases[i]()
				releases = slices.Delete(releases, i, i+1)
			}
		case 5:
			s := c.Sweep()
			for range 6 {
				s.Keep(string(rune('a'+rnd.IntN(8))), "u", 1)
			}
			if _, _, err := s.Remove(1); err != nil {
				t.Fatal(err)
			}
			if len(releases) == 0 { // as a process that follows
				c.Close()
				c = open(t, dir, 300)
			}
		}
		var idle []*mirror
		for place := c.idle.Front(); place != nil; place = place.Next() {
			idle = append(idle, place.Value.(*mirror))
		}
		size, unused := int64(0), 0
		for name, m := range c.mirrors {
			if size += m.size; m.users == 0 {
				unused++
			}
			if m.users == 0 && (m.size != folderSize(filepath.Join(c.mirrorsDir(), name)) || !slices.Contains(idle, m)) {
				t.Fatalf("mirror %+v is not what is there, or not idle", m)
			}
		}
		ordered := slices.IsSortedFunc(idle, func(a, b *mirror) int { return a.used.Compare(b.used) })
		if size != c.size || unused != len(idle) || !ordered {
			t.Fatalf("%d bytes in %d mirrors that nobody uses, counted %d in %d, in order: %t", size, unused, c.size, len(idle), ordered)
		}
	}
	for _, release := range releases {
		release()
	}
}

// TestSweep: mirrors that are not desired go, unless they are in use or were made meanwhile.
func TestSweep(t *testing.T) {
	c := open(t, t.TempDir(), 1<<20)
	dirs := map[string]string{}
	for _, name := range []string{"kept", "deleted", "moved", "used", "again"} {
		dir, release := c.Use(name, "u", 1)
		dirs[name] = dir
		fill(t, dir, 10)
		release()
	}
	_, releaseUsed := c.Use("used", "u", 1)
	s := c.Sweep()
	s.Keep("kept", "u", 1)
	s.Keep("moved", "elsewhere", 1)
	_, releaseAgain := c.Use("again", "u", 1)
	releaseAgain()
	dir, release := c.Use("new", "u", 1)
	dirs["new"] = dir
	fill(t, dir, 10)
	release()
	removed, busy, err := s.Remove(1)
	if err != nil || removed != 2 || busy != 3 {
		t.Errorf("removed %d, %d are busy, %v", removed, busy, err)
	}
	for name, dir := range dirs {
		if want := name != "deleted" && name != "moved"; there(dir) != want {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
	releaseUsed()
	s = c.Sweep()
	if removed, busy, err = s.Remove(1); err != nil || removed != 4 || busy != 0 {
		t.Errorf("nothing is desired: removed %d, %d are busy, %v", removed, busy, err)
	}

	// A later life of a repo inherits no mirror, and the sweep leaves out lives that began after
	// the revision.
	first, release := c.Use("repo", "u", 5)
	fill(t, first, 10)
	release()
	s = c.Sweep()
	second, release := c.Use("repo", "u", 9)
	if second == first {
		t.Error("two lives share a mirror")
	}
	fill(t, second, 10)
	if removed, busy, err = s.Remove(8); err != nil || removed != 1 || busy != 0 || there(first) || !there(second) {
		t.Errorf("removed %d, %d are busy, %v", removed, busy, err)
	}
	release()
}
