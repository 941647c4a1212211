package testrun

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a program that ends with this process, however that ends: no cleanup runs when a
// test has taken too long. Wait may be called once; it waits for the end of the program and returns what cmd.Wait
// returns.
//
// The kernel kills the program when the thread ends that started it. So a goroutine keeps that thread until then.
func Start(cmd *exec.Cmd) (wait func() error, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return func() error { return <-ended }, <-started
}
