package up

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAMemberThatIsNotThereIsTriedAgain(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	ask := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gone.URL, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("joining member1: %w", errors.Join(err, errors.New("cleaning up")))
		}
		return response.Body.Close()
	}
	gone.Close()
	wrong := errors.New("the name is taken")
	tries := 0
	err := persist(t.Context(), func() error {
		if tries++; tries == 1 {
			return ask()
		}
		return wrong
	})
	if tries != 2 || !errors.Is(err, wrong) {
		t.Errorf("%d tries ended with %v; the first should be repeated, the second not", tries, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist(ended, ask); err == nil || !absent(err) {
		t.Errorf("after the end of the start it says %v, not what was wrong", err)
	}
}
