package testrun

import "testing"

func TestSeedIsTaken(t *testing.T) {
	t.Setenv(seedEnv, "7")
	if seed := Seed(t); seed != 7 {
		t.Errorf("seed %d", seed)
	}
	if a, b := Rand(t).Uint64(), Rand(t).Uint64(); a != b {
		t.Errorf("the same seed gives %d and %d", a, b)
	}
}

func TestRounds(t *testing.T) {
	t.Setenv(allEnv, "")
	if n := Rounds(2, 9); n != 2 {
		t.Errorf("%d rounds", n)
	}
	t.Setenv(allEnv, "1")
	if n := Rounds(2, 9); n != 9 {
		t.Errorf("%d rounds of all", n)
	}
}
