package web

import (
	"archive/zip"
	"bytes"
	_ "embed" // for the lexers
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// lexersZip has chroma's lexers, except those for two languages at once. go test -run ChromaLexers -update writes it.
// Chroma's own package reads all of them at every start of the program, which takes 10 ms.
//
//go:embed lexers.zip
var lexersZip []byte

// lexers reads which lexers there are, when the first is needed. Each reads its rules when it is first used.
var lexers = sync.OnceValue(func() *chroma.LexerRegistry {
	files, err := zip.NewReader(bytes.NewReader(lexersZip), int64(len(lexersZip)))
	if err != nil {
		panic(err) //nolint:forbidigo // the file is part of the program
	}
	registry := chroma.NewLexerRegistry()
	for _, f := range files.File {
		registry.Register(chroma.MustNewXMLLexer(files, f.Name))
	}
	return registry
})
