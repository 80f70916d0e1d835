package flags

import (
	"fmt"
	"time"
)

// ValidatePositive returns an error if the value of a duration flag is not positive.
func ValidatePositive(flag string, value time.Duration) error {
	if value <= 0 {
		return fmt.Errorf("--%s %s: must be positive", flag, value)
	}
	return nil
}

// ValidateNotNegative returns an error if the value of a duration flag is negative.
func ValidateNotNegative(flag string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("--%s %s: must not be negative", flag, value)
	}
	return nil
}
