package manifest

import (
	"bytes"
	"encoding/json"
	"io"
)

// document is one YAML or JSON document of a file.
type document struct {
	// line is the number of the document's first line in the file, from 1.
	line int
	data []byte
}

// split cuts a file at its document markers and drops documents that say nothing.
//
// A marker line stays with the document that it starts, because it may have content:
// "--- {kind: Node}". The YAML library reads one document and silently drops what follows, so
// nothing may follow.
func split(data []byte) (docs []document) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	start, startLine := 0, 1
	flush := func(end, nextLine int) {
		if d := data[start:end]; !vacant(d) {
			docs = append(docs, jsonStream(document{startLine, d})...)
		}
		start, startLine = end, nextLine
	}
	line, pos := 1, 0
	for text := range bytes.Lines(data) {
		switch {
		case marker(text, "---"):
			flush(pos, line)
		case marker(text, "..."):
			flush(pos, line)
			start, startLine = pos+len(text), line+1
		}
		pos += len(text)
		line++
	}
	flush(len(data), line)
	return docs
}

// marker reports whether a line is the marker, alone or followed by a blank.
func marker(line []byte, m string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(m))
	return ok && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])))
}

// vacant reports whether a document has nothing but blanks, comments, directives and its marker.
func vacant(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		if marker(line, "---") {
			line = line[3:]
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// jsonStream splits a JSON document into its values. It returns any other document as it is.
func jsonStream(d document) (docs []document) {
	body := d.data
	if marker(body, "---") {
		body = body[3:]
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return []document{d}
	}
	skipped := len(d.data) - len(body)
	dec := json.NewDecoder(bytes.NewReader(body))
	for {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			return docs
		} else if err != nil {
			return []document{d}
		}
		at := skipped + int(dec.InputOffset()) - len(raw)
		docs = append(docs, document{d.line + bytes.Count(d.data[:at], []byte("\n")), raw})
	}
}
