package main

import (
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"
)

// memorySampleInterval is the interval at which the memory of a program is read. Shorter peaks may be
// missed.
const memorySampleInterval = 20 * time.Millisecond

// memory is the resident memory of a process, in bytes, and its parts: memory of its own, and pages of
// files, such as those of the program itself.
type memory struct {
	resident, anonymous, file int64
}

// memorySampler reads the memory of a process until stop is called.
type memorySampler struct {
	proc fs.FS
	pid  int
	end  chan struct{}
	done chan struct{}

	mu            sync.Mutex
	last, highest memory
}

func startMemorySampler(pid int) *memorySampler {
	m := &memorySampler{proc: os.DirFS("/proc"), pid: pid, end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		ticker := time.NewTicker(memorySampleInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				m.sample()
			case <-m.end:
				return
			}
		}
	}()
	return m
}

// sample reads the memory. A process that has ended keeps its last values.
func (m *memorySampler) sample() {
	status, err := fs.ReadFile(m.proc, strconv.Itoa(m.pid)+"/status")
	if err != nil {
		return
	}
	read, err := parseMemory(status)
	if err != nil || read.resident == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = read
	if read.resident > m.highest.resident {
		m.highest = read
	}
}

// parseMemory parses the memory in /proc/<pid>/status. Shared memory belongs to no part.
func parseMemory(status []byte) (m memory, err error) {
	for name, value := range map[string]*int64{"VmRSS": &m.resident, "RssAnon": &m.anonymous, "RssFile": &m.file} {
		if *value, err = parseStatusField(status, name); err != nil {
			return memory{}, err
		}
	}
	return m, nil
}

// now returns the memory now.
func (m *memorySampler) now() memory {
	m.sample()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// restart forgets the peak.
func (m *memorySampler) restart() {
	m.mu.Lock()
	m.highest = memory{}
	m.mu.Unlock()
	m.sample()
}

// peak returns the memory at the time at which the resident memory was highest since restart.
func (m *memorySampler) peak() memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.highest
}

func (m *memorySampler) stop() {
	close(m.end)
	<-m.done
}
