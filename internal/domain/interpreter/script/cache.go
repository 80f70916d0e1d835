package script

import (
	"sync"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter"
)

// maxCached is the maximum number of scripts in the cache. Rules keep their scripts in addition.
const maxCached = 1024

// cache holds compiled scripts and their Breakers. When rules are created again, their scripts are not
// compiled again, and a script that exceeded its time remains paused.
type cache struct {
	mu      sync.Mutex
	entries map[cacheKey]*cached
	// order holds the keys of the entries, oldest first.
	order []cacheKey
}

type cacheKey struct{ text, function string }

// cached is a script that is compiled on first use.
type cached struct {
	compile func() (*lua.FunctionProto, error)
	breaker interpreter.Breaker
}

// cached returns the script with the given text, for one of its functions.
func (e *Engine) cached(text, function string) *cached {
	c, key := &e.cache, cacheKey{text: text, function: function}
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry, ok := c.entries[key]; ok {
		return entry
	}
	if c.entries == nil {
		c.entries = map[cacheKey]*cached{}
	}
	if len(c.order) == maxCached {
		delete(c.entries, c.order[0])
		c.order = append(c.order[:0], c.order[1:]...)
	}
	entry := &cached{compile: sync.OnceValues(func() (*lua.FunctionProto, error) { return compile(text, scriptSource) })}
	c.entries[key] = entry
	c.order = append(c.order, key)
	return entry
}
