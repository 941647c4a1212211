package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
)

// zapCore passes etcd's log on to slog, more quietly. etcd logs its whole configuration
// at each start, warns of what is normal with one member, and logs errors for things
// that it retries a moment later. Its clients report lasting errors. When closing is
// set, etcd logs an error for each listener that closes, which is expected.
type zapCore struct {
	logger  *slog.Logger
	closing *atomic.Bool
	fields  []zapcore.Field
}

func (c zapCore) level(level zapcore.Level) slog.Level {
	switch {
	case level > zapcore.ErrorLevel: // the process is about to end
		return slog.LevelError
	case level == zapcore.ErrorLevel && !c.closing.Load():
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// Enabled implements zapcore.LevelEnabler.
func (c zapCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.InfoLevel && c.logger.Enabled(context.Background(), c.level(level))
}

// With implements zapcore.Core.
func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	return zapCore{logger: c.logger, closing: c.closing, fields: append(slices.Clip(c.fields), fields...)}
}

// Check implements zapcore.Core.
func (c zapCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c zapCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range append(slices.Clip(c.fields), fields...) {
		f.AddTo(encoder)
	}
	attrs := make([]slog.Attr, 0, len(encoder.Fields))
	for key, value := range encoder.Fields {
		attrs = append(attrs, slog.Any(key, value))
	}
	c.logger.LogAttrs(context.Background(), c.level(entry.Level), entry.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core; slog handlers write at once.
func (c zapCore) Sync() error { return nil }

// natsLogger passes the NATS server's log on to slog.
type natsLogger struct{ logger *slog.Logger }

func (l natsLogger) Noticef(format string, v ...any) { l.log(slog.LevelDebug, format, v) }
func (l natsLogger) Debugf(format string, v ...any)  { l.log(slog.LevelDebug, format, v) }
func (l natsLogger) Tracef(format string, v ...any)  { l.log(slog.LevelDebug, format, v) }
func (l natsLogger) Warnf(format string, v ...any)   { l.log(slog.LevelWarn, format, v) }
func (l natsLogger) Errorf(format string, v ...any)  { l.log(slog.LevelError, format, v) }
func (l natsLogger) Fatalf(format string, v ...any)  { l.log(slog.LevelError, format, v) }

func (l natsLogger) log(level slog.Level, format string, v []any) {
	if l.logger.Enabled(context.Background(), level) {
		l.logger.Log(context.Background(), level, fmt.Sprintf(format, v...))
	}
}
