package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/config"
)

// declared makes settings of any struct.
type declared[T any] struct{ Fields T }

func (*declared[T]) SetDefaults()    {}
func (*declared[T]) Validate() error { return nil }

// bind declares settings whose group "g" is the struct.
func bind[T any](flags *pflag.FlagSet) error {
	type group struct {
		declared[T] `config:"-"`
		Group       T `config:"g"`
	}
	_, err := config.Bind(flags, "role", &group{})
	return err
}

func TestWrongDeclarations(t *testing.T) {
	flags := func() *pflag.FlagSet { return pflag.NewFlagSet("role", pflag.ContinueOnError) }
	taken := flags()
	taken.String("g-a", "", "")
	for want, err := range map[string]error{
		"no usable config tag": bind[struct{ A string }](flags()),
		`no usable config tag: "`: bind[struct {
			A string `config:"Up_per" doc:"x"`
		}](flags()),
		"has no doc tag": bind[struct {
			A string `config:"a"`
		}](flags()),
		"cannot be a map[string]string": bind[struct {
			A map[string]string `config:"a" doc:"x"`
		}](flags()),
		"share the variable TRAWL_ROLE_G_A_B": bind[struct {
			A string `config:"a-b" doc:"x"`
			B struct {
				C string `config:"b" doc:"x"`
			} `config:"a"`
		}](flags()),
		"Kubernetes": bind[struct {
			A string `config:"nats-port" doc:"x"`
		}](flags()),
		"--g-a exists already": bind[struct {
			A string `config:"a" doc:"x"`
		}](taken),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	if err := bind[struct {
		a string
		B string `config:"b" doc:"x"`
	}](flags()); err != nil {
		t.Errorf("a field that is not exported: %v", err)
	}
}

func TestSecretIsNotShown(t *testing.T) {
	type holder struct{ Token config.Secret }
	h := holder{"hunter2"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", h.Token, "holder", h)
	marshalled, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %v %s", h, h, h, h.Token, h.Token, &h, fmt.Errorf("x %v", h.Token)) + log.String() + string(marshalled)
	if strings.Contains(shown, "hunter2") || !strings.Contains(shown, "[redacted]") {
		t.Errorf("shown: %s", shown)
	}
	if s := config.Secret("").String(); s != "" {
		t.Errorf("no secret is shown as %q", s)
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]config.Bytes{
		"0": 0, "1": 1, "5B": 5, "64KiB": 65536, "64 KiB": 65536, "2GiB": 2 << 30, "3TiB": 3 << 40, "1kB": 1000, "7MB": 7e6, "2GB": 2e9, "1TB": 1e12,
		"9223372036854775807": math.MaxInt64, "8388607TiB": 8388607 << 40,
	} {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: %d, error %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "B", "KiB", "-1", "1.5GiB", "1e3", "0x10", "1 2", "64kib", "9223372036854775808", "8388608TiB", "18446744073709551616", "+1", "1_000"} {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken for %d", text, b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := config.Bytes(rapid.Int64Range(0, math.MaxInt64).Draw(t, "bytes")) >> rapid.IntRange(0, 62).Draw(t, "shift")
		b <<= rapid.IntRange(0, 8).Draw(t, "zeros") * 10 % 20
		if b < 0 {
			t.Skip("overflow")
		}
		var back config.Bytes
		if err := back.UnmarshalText([]byte(b.String())); err != nil || back != b {
			t.Fatalf("%d is written %s and read as %d, error %v", int64(b), b, int64(back), err)
		}
	})
}
