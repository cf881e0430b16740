package node

import (
	"testing"
	"time"
)

func TestLeaderEpochGrows(t *testing.T) {
	var l election
	now := time.UnixMilli(1000)
	l.update(true, now)
	first := l.since
	l.update(false, now)
	l.update(true, now.Add(-time.Hour)) // the clock went back
	if first != 1000 || l.since <= first {
		t.Errorf("epochs %d, %d", first, l.since)
	}
}
