package ping

import (
	"encoding/binary"
	"testing"
)

func TestRequest(t *testing.T) {
	for _, f := range []family{family4, family6} {
		for _, size := range []int{0, 60, 61, 1420, 1 << 20} {
			b := f.request(0x1122334455667788, size)
			if got, want := len(b)+f.header, max(size, headers+f.header); got != want && size < 1<<16 {
				t.Errorf("%s: a packet of %d bytes, want %d", f.network, got, want)
			}
			if f.sums && checksum(b) != 0 {
				t.Errorf("%s: the checksum of %d bytes is wrong", f.network, len(b))
			}
			if _, is := f.answer(b); is {
				t.Errorf("%s: a request counts as an answer", f.network)
			}
			b[0] = f.reply // what the peer's kernel changes, besides the checksum
			if id, is := f.answer(b); !is || id != 0x1122334455667788 {
				t.Errorf("%s: the answer has id %x, %t", f.network, id, is)
			}
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, fam := range []family{family4, family6} {
		b := fam.request(7, 0)
		b[0] = fam.reply
		f.Add(b)
		f.Add(b[:headers-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, fam := range []family{family4, family6} {
			id, is := fam.answer(b)
			if !is {
				continue
			}
			if len(b) < headers || b[0] != fam.reply || binary.BigEndian.Uint64(b[8:]) != id {
				t.Errorf("%x counts as the answer to %x", b, id)
			}
		}
	})
}
