package indextest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Hostile has texts that are unlike source code, by name. Each function takes a size in
// bytes and returns a text of about that size, always the same.
var Hostile = map[string]func(size int) []byte{
	"distinct words": func(size int) []byte {
		var b bytes.Buffer
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, "w%x ", i)
		}
		return b.Bytes()
	},
	"random words": randomWords,
	"one word":     func(size int) []byte { return bytes.Repeat([]byte("Endless_"), size/8) },
	"minified":     minified,
	"base64": func(size int) []byte {
		return cutIntoLines(base64.StdEncoding.EncodeToString(noise(size*3/4)), 76)
	},
	"hex dump": func(size int) []byte {
		return []byte(hex.Dump(noise(size * 16 / 79)))
	},
	"hashes": func(size int) []byte {
		return cutIntoLines(hex.EncodeToString(noise(size/2)), 64)
	},
	"Chinese": func(size int) []byte {
		r := rand.New(rand.NewPCG(5, 6))
		var b bytes.Buffer
		for b.Len() < size {
			for range 4 + r.IntN(20) {
				b.WriteRune('\u4e00' + rune(r.ExpFloat64()*500)%0x5000)
			}
			b.WriteString([]string{"，", "。", "。\n", " API ", "、"}[r.IntN(5)])
		}
		return b.Bytes()
	},
}

func noise(size int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, size)
	_, _ = r.Read(b) // never fails
	return b
}

// cutIntoLines cuts a text into lines of length bytes.
func cutIntoLines(text string, length int) []byte {
	var b bytes.Buffer
	for ; len(text) > length; text = text[length:] {
		b.WriteString(text[:length] + "\n")
	}
	b.WriteString(text + "\n")
	return b.Bytes()
}

func randomWords(size int) []byte {
	r := rand.New(rand.NewPCG(7, 8))
	var b bytes.Buffer
	for b.Len() < size {
		for range 1 + r.IntN(24) {
			b.WriteByte("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"[r.IntN(63)])
		}
		b.WriteByte(" \n\t.,"[r.IntN(5)])
	}
	return b.Bytes()
}

// minified returns one line of expressions with short names.
func minified(size int) []byte {
	r := rand.New(rand.NewPCG(9, 10))
	var b bytes.Buffer
	for b.Len() < size {
		name := strings.Repeat(string(rune('a'+r.IntN(26))), 1+r.IntN(2))
		fmt.Fprintf(&b, "function %s%d(%c,n){return n?%s(%d^n):!%d}", name, r.IntN(1000), 'a'+r.IntN(26), name, r.IntN(1<<20), r.IntN(2))
	}
	return b.Bytes()
}
