package mcptools

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// LineTransport is a transport of messages that are a line each. A line that is no message is answered with an error, and the next one is read: for the SDK
// alone the connection would be at its end. Neither the input nor the output is closed.
func LineTransport(in io.Reader, out io.Writer) mcp.Transport {
	lines, replies := bufio.NewScanner(in), &lineWriter{out: out}
	lines.Buffer(nil, mcp.DefaultMaxLineLength)
	lines.Split(beginnings(mcp.DefaultMaxLineLength))
	return &mcp.IOTransport{Reader: io.NopCloser(&lineReader{lines: lines, replies: replies}), Writer: replies}
}

// beginnings splits lines as bufio.ScanLines does, and leaves out of each what is beyond that many bytes.
func beginnings(most int) bufio.SplitFunc {
	beyond := false
	return func(data []byte, atEOF bool) (advance int, line []byte, err error) {
		advance, line, err = bufio.ScanLines(data, atEOF)
		goesOn := advance == 0 && len(data) == most
		if goesOn {
			advance, line = len(data), data
		}
		if beyond {
			line = nil
		}
		if advance > 0 {
			beyond = goesOn
		}
		return advance, line, err
	}
}

// lineReader reads the lines that are messages.
type lineReader struct {
	lines   *bufio.Scanner
	replies io.Writer
	left    []byte // of the line that is being read
}

// Read implements io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if !r.lines.Scan() {
			return 0, cmp.Or(r.lines.Err(), io.EOF)
		}
		line := bytes.TrimSpace(r.lines.Bytes())
		_, err := jsonrpc.DecodeMessage(line)
		switch {
		case len(line) == 0:
		case err == nil && json.Valid(line): // the SDK takes a message with anything after it, and then ends
			r.left = append(bytes.Clone(line), '\n')
		default:
			if err := r.refuse(line, err); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// refuse answers a line that is no message.
func (r *lineReader) refuse(line []byte, err error) error {
	code, text := jsonrpc.CodeInvalidRequest, fmt.Sprintf("not a message of JSON-RPC 2.0: %v", err)
	switch {
	case len(line) >= mcp.DefaultMaxLineLength:
		code, text = jsonrpc.CodeParseError, fmt.Sprintf("the line has more than %d bytes", mcp.DefaultMaxLineLength)
	case !json.Valid(line):
		code, text = jsonrpc.CodeParseError, "the line is not one value of JSON"
	case line[0] == '[':
		text = "batches are not supported: send each message in a line of its own"
	}
	data, err := json.Marshal(text)
	if err == nil {
		_, err = fmt.Fprintf(r.replies, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%s}}`+"\n", code, data)
	}
	return err
}

// lineWriter writes whole lines, of several writers, to an output that stays open.
type lineWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(line)
}

// Close implements io.Closer.
func (*lineWriter) Close() error { return nil }
