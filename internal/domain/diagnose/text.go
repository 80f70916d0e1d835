package diagnose

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// count returns the number followed by the noun, in the plural if the number is not 1.
func count(number int64, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// formatTime returns a time in UTC. The text does not depend on the current time.
func formatTime(at *metav1.Time) string {
	if at == nil {
		return "an unknown time"
	}
	return at.UTC().Format(time.RFC3339)
}
