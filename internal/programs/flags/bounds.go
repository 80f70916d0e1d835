package flags

import (
	"fmt"
	"time"
)

// Positive returns an error if the duration that a flag was given is 0 or less.
func Positive(flag string, value time.Duration) error {
	if value <= 0 {
		return fmt.Errorf("--%s %s: must be positive", flag, value)
	}
	return nil
}

// NotNegative returns an error if the duration that a flag was given is less than 0.
func NotNegative(flag string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("--%s %s: must not be negative", flag, value)
	}
	return nil
}
