package durable

import (
	"fmt"
	"io"
	"os"
)

// Read returns the content of a file, which may have at most so many bytes: what others can write must not
// take all memory.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return b, err
}
