//go:build !linux

package sandbox

import (
	"errors"
	"syscall"
)

func (b *Box) start(p *Process) error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return p.cmd.Start()
}

// Support reports what keeps programs from being confined entirely, nil if nothing does.
func Support() error {
	return errors.New("programs are confined on Linux only")
}
