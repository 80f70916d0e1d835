package script

import "fmt"

const (
	// textBytes is the memory for each byte of a string in a result: JSON needs up to six bytes for
	// one, and its buffer grows by doubling.
	textBytes = 8
	// cloneBytes is the memory for each field or entry of a container that a result copies.
	cloneBytes = 64
)

// moved returns a copy of a value of an object that is at another place in the result. A script can
// use one value at many places, so each of them counts as if the script had created it: the caller
// encodes all of them. No part of the copy is shared, so that a change of one place is no change of
// another place or of an argument.
func (c *converter) moved(value any) (any, error) {
	if err := c.countValue(); err != nil {
		return nil, err
	}
	switch value := value.(type) {
	case string:
		return value, c.reserve(textBytes * len(value))
	case []any:
		if err := c.reserve(cloneBytes * len(value)); err != nil {
			return nil, err
		}
		list := make([]any, len(value))
		for i, entry := range value {
			var err error
			if list[i], err = c.moved(entry); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		if err := c.reserve(cloneBytes * len(value)); err != nil {
			return nil, err
		}
		object := make(map[string]any, len(value))
		for name, field := range value {
			err := c.reserve(textBytes * len(name))
			if err != nil {
				return nil, err
			}
			if object[name], err = c.moved(field); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

// countValue counts one value of a result.
func (c *converter) countValue() error {
	if c.count++; c.count > c.limits.Result {
		return fmt.Errorf("the result has more than %d values", c.limits.Result)
	}
	return c.use(1)
}
