package format

import (
	"reflect"
	"runtime"
	"runtime/debug"
)

// cutReason is what a fault in a mapping means: the pages are there until
// somebody cuts the file, or the disk cannot read them.
const cutReason = "the bytes cannot be read: the file was cut while it was open, or the disk failed"

// Guard runs fn, which reads the shard, and turns a memory fault in it into a
// *CorruptError of the section that the address lies in. Without it a shard that
// is cut while it is mapped ends the process. It covers the calling goroutine
// only. Any other panic goes on, that of a fault outside of the shard too.
func (f *File) Guard(fn func() error) error {
	return guard(fn, f.fault)
}

// GuardFiles is Guard for a function that reads several shards: it finds the
// one that a fault lies in, too.
func GuardFiles(files []*File, fn func() error) error {
	return guard(fn, func(addr uintptr) error {
		for _, f := range files {
			if err := f.fault(addr); err != nil {
				return err
			}
		}
		return nil
	})
}

// fault says what a fault at an address means, nil if it is not in the shard.
func (f *File) fault(addr uintptr) error {
	base := reflect.ValueOf(f.data).Pointer()
	if addr < base || addr-base >= uintptr(len(f.data)) {
		return nil
	}
	off := int64(addr - base)
	return corruptf(f.name, f.partAt(off), off, cutReason)
}

// guard runs fn; report makes the error of a fault at an address, or nil when
// the fault is not its concern.
func guard(fn func() error, report func(addr uintptr) error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		reason := recover()
		if reason == nil {
			return
		}
		// Only a fault has an address; a nil pointer does not.
		if fault, ok := reason.(interface {
			runtime.Error
			Addr() uintptr
		}); ok {
			if err = report(fault.Addr()); err != nil {
				return
			}
		}
		panic(reason) //nolint:forbidigo // somebody else's panic is passed on
	}()
	return fn()
}
