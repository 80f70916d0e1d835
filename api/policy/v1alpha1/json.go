package v1alpha1

import "bytes"

// JSON is a value of any JSON type, in its original encoding. The zero value
// stands for null and for an absent value.
type JSON struct {
	// Raw is the encoded value; empty for null.
	Raw []byte `json:"-"`
}

// MarshalJSON returns the original encoding.
func (j JSON) MarshalJSON() ([]byte, error) {
	if len(j.Raw) == 0 {
		return []byte("null"), nil
	}
	return j.Raw, nil
}

// UnmarshalJSON stores a copy of the encoded value.
func (j *JSON) UnmarshalJSON(data []byte) error {
	j.Raw = nil
	if string(data) != "null" {
		j.Raw = bytes.Clone(data)
	}
	return nil
}
