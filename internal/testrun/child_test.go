package testrun

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestProgramsEndWithTheProcess: a process that ends without any cleanup, as a test that takes too
// long does, takes what it started with it.
func TestProgramsEndWithTheProcess(t *testing.T) {
	const parent = "TRAWL_TEST_PARENT"
	if os.Getenv(parent) != "" {
		child := exec.Command("sh", "-c", "echo begins; exec sleep 1000")
		child.Stdout = os.Stdout
		if _, err := Start(child); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
	}
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProgramsEndWithTheProcess$")
	self.Env = append(os.Environ(), parent+"=1")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	self.Stdout = in
	wait, err := Start(self)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); err != nil || line != "begins\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	if err := self.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := wait(); err == nil {
		t.Error("a killed process ended well")
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(said); err != nil || len(rest) > 0 { // the end comes when nobody has the pipe
		t.Errorf("after its process, a program lives on: %q, %v", rest, err)
	}
}
