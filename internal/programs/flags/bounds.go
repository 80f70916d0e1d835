package flags

import (
	"fmt"
	"time"
)

// Positive returns an error if the value of a duration flag is not positive.
func Positive(flag string, value time.Duration) error {
	if value <= 0 {
		return fmt.Errorf("--%s %s: must be positive", flag, value)
	}
	return nil
}

// NotNegative returns an error if the value of a duration flag is negative.
func NotNegative(flag string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("--%s %s: must not be negative", flag, value)
	}
	return nil
}
