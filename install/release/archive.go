package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"time"
)

// File is a file of an archive.
type File struct {
	Name string
	Text []byte
	// Program is set if the file can be executed.
	Program bool
}

func (f File) mode() int64 {
	if f.Program {
		return 0o755
	}
	return 0o644
}

// Pack returns an archive of files, all of one time, in the format that its name ends with.
func Pack(name string, files []File, when time.Time) ([]byte, error) {
	if strings.HasSuffix(name, ".zip") {
		return packZip(files, when)
	}
	return packTar(files, when)
}

func packTar(files []File, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	for _, f := range files {
		h := tar.Header{Name: f.Name, Mode: f.mode(), Size: int64(len(f.Text)), ModTime: when.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Text); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), packed.Close())
	return out.Bytes(), err
}

func packZip(files []File, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		h := zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: when.UTC()}
		h.ExternalAttrs = uint32(0o100000|f.mode()) << 16 // as Unix's zip has them: a regular file
		h.CreatorVersion = 3 << 8
		to, err := w.CreateHeader(&h)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, bytes.NewReader(f.Text)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
