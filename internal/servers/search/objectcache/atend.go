package objectcache

// IsAtEnd reports whether Next returned all events up to now.
func (c *Cursor) IsAtEnd() bool {
	c.kind.mu.Lock()
	defer c.kind.mu.Unlock()
	return len(c.initial) == 0 && c.next >= c.kind.log.next()
}
