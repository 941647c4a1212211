package format

import (
	"reflect"
	"runtime"
	"runtime/debug"
)

// cutReason explains a fault in a mapping: its pages can be read unless
// somebody truncates the file or the disk fails.
const cutReason = "the bytes cannot be read: the file was cut while it was open, or the disk failed"

// Guard runs fn, which reads the shard, and turns a memory fault in it into a
// *CorruptError for the section with the address. Without Guard, truncating a
// mapped shard ends the process. It covers only the calling goroutine. Other
// panics pass through, including faults outside of the shard.
func (f *File) Guard(fn func() error) error {
	return guard(fn, f.fault)
}

// GuardFiles is Guard for a function that reads several shards. It also finds
// the shard with the fault.
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

// fault returns the error for a fault at an address; nil if the address is
// outside of the shard.
func (f *File) fault(addr uintptr) error {
	base := reflect.ValueOf(f.data).Pointer()
	if addr < base || addr-base >= uintptr(len(f.data)) {
		return nil
	}
	off := int64(addr - base)
	return corruptf(f.name, f.partAt(off), off, cutReason)
}

// guard runs fn. report returns the error for a fault at an address, or nil if
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
		panic(reason) //nolint:forbidigo // not a fault of the shard, so it passes through
	}()
	return fn()
}
