package proxying

import (
	"sync"
	"time"
)

// suspicion is how long a cluster that did not answer is a suspect.
const suspicion = 30 * time.Second

// suspects are the clusters that did not answer a short time ago.
type suspects struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// record records whether a cluster answered a request. An error response is an answer.
func (s *suspects) record(cluster string, answered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answered {
		delete(s.until, cluster)
		return
	}
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[cluster] = time.Now().Add(suspicion)
}

// has reports whether a cluster is a suspect.
func (s *suspects) has(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[cluster])
}
