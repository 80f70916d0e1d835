package command

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueryAll(t *testing.T) {
	const limitMilliseconds = 20
	tests := map[string]struct {
		targets []Target
		timeout RequestTimeout
		query   func(context.Context, Target) (string, error)
		want    []string
		errs    []string
	}{
		"results are in the order of targets": {
			targets: []Target{{}, {Cluster: "east"}, {Cluster: "west"}},
			query:   func(_ context.Context, where Target) (string, error) { return where.Name(), nil },
			want:    []string{"Karmada", "east", "west"}, errs: []string{"", "", ""},
		},
		"an error affects one target": {
			targets: []Target{{Cluster: "east"}, {Cluster: "west"}},
			query: func(_ context.Context, where Target) (string, error) {
				if where.Cluster == "east" {
					return "", errors.New("rejected")
				}
				return "here", nil
			},
			want: []string{"", "here"}, errs: []string{"rejected", ""},
		},
		"a target that does not respond": {
			targets: []Target{{Cluster: "east"}, {Cluster: "west"}}, timeout: RequestTimeout{limit: limitMilliseconds * time.Millisecond},
			query: func(ctx context.Context, where Target) (string, error) {
				if where.Cluster == "east" {
					<-ctx.Done()
					return "too late", ctx.Err()
				}
				return "here", nil
			},
			want: []string{"", "here"},
			errs: []string{`no response from member "east" within 20ms; --request-timeout sets the limit`, ""},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := QueryAll(t.Context(), test.targets, test.timeout, test.query)
			messages := make([]string, len(errs))
			for i, err := range errs {
				if err != nil {
					messages[i], got[i] = err.Error(), ""
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.errs, messages); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueryAllCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := make(chan struct{})
	defer close(never)
	_, errs := QueryAll(ctx, []Target{{Cluster: "east"}}, RequestTimeout{}, func(context.Context, Target) (int, error) {
		<-never
		return 0, nil
	})
	if !errors.Is(errs[0], context.Canceled) {
		t.Errorf("got %v", errs[0])
	}
}
