package place

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAllPlacesAreAskedInTheirOrder(t *testing.T) {
	const most = 20
	tests := map[string]struct {
		places   []Place
		patience Patience
		ask      func(context.Context, Place) (string, error)
		want     []string
		errs     []string
	}{
		"who answers late comes in the same order": {
			places: []Place{{}, {Cluster: "east"}, {Cluster: "west"}},
			ask:    func(_ context.Context, where Place) (string, error) { return where.Name(), nil },
			want:   []string{"Karmada", "east", "west"}, errs: []string{"", "", ""},
		},
		"a failure is that of one place": {
			places: []Place{{Cluster: "east"}, {Cluster: "west"}},
			ask: func(_ context.Context, where Place) (string, error) {
				if where.Cluster == "east" {
					return "", errors.New("refused")
				}
				return "here", nil
			},
			want: []string{"", "here"}, errs: []string{"refused", ""},
		},
		"who does not answer is left behind": {
			places: []Place{{Cluster: "east"}, {Cluster: "west"}}, patience: Patience{limit: most * time.Millisecond},
			ask: func(ctx context.Context, where Place) (string, error) {
				if where.Cluster == "east" {
					<-ctx.Done()
					return "too late", ctx.Err()
				}
				return "here", nil
			},
			want: []string{"", "here"},
			errs: []string{`no answer from member "east" within 20ms; --request-timeout sets how long to wait`, ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := AskAll(t.Context(), test.places, test.patience, test.ask)
			told := make([]string, len(errs))
			for i, err := range errs {
				if err != nil {
					told[i], got[i] = err.Error(), ""
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.errs, told); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := make(chan struct{})
	defer close(never)
	_, errs := AskAll(ctx, []Place{{Cluster: "east"}}, Patience{}, func(context.Context, Place) (int, error) {
		<-never
		return 0, nil
	})
	if !errors.Is(errs[0], context.Canceled) {
		t.Errorf("got %v", errs[0])
	}
}
