package bounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// newLister returns a function that lists objects from a server. Each object in these lists
// consists of the given text.
func newLister(t *testing.T, object string, tracker *HitTracker) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
		_, err := io.WriteString(w, `{"items":[`)
		for i := 0; i < limit && err == nil; i++ {
			_, err = io.WriteString(w, object+",")
		}
		_, _ = io.WriteString(w, `{}]}`)
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: NewTransport(&http.Transport{}, DefaultLimits(), tracker)}
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/configmaps?limit=%d", server.URL, o.Limit), http.NoBody)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		// As in client-go, the body is closed before it is decoded.
		defer response.Body.Close()
		if _, err := io.ReadAll(response.Body); err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		return &unstructured.UnstructuredList{}, nil
	}
}

func TestReadPageRecordsOnlySingleObjectPages(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		limit  int64
		want   Bound
	}{
		"250 objects of 30 KB":                    {`{"a":"` + strings.Repeat("x", 30<<10) + `"}`, 62, ""},
		"objects of a thousand values":            {`[` + strings.Repeat("{},", 1000) + `{}]`, 62, ""},
		"an object with many braces in its text":  {`{"a":"` + strings.Repeat("{", 200_000) + `"}`, 15, ""},
		"an object that is larger than an answer": {`{"a":"` + strings.Repeat("x", 5<<20) + `"}`, 1, AnswerBytes},
		"an object with too many values":          {`[` + strings.Repeat("{},", 200_000) + `{}]`, 1, JSONValues},
		"an object with too many elements":        {`[` + strings.Repeat("0,", 200_000) + `0]`, 1, JSONValues},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewHitTracker("m1", time.Now)
			caches := &MemberBounds{Limits: DefaultLimits(), Hits: tracker, Now: time.Now}
			options := metav1.ListOptions{Limit: 250}
			err := caches.ReadPage(t.Context(), &options, newLister(t, tc.object, tracker), func(runtime.Object) error { return nil })
			var exceeded *ExceededError
			recent := tracker.Recent()
			if tc.want == "" && (err != nil || len(recent) > 0) {
				t.Errorf("err = %v, recorded %v", err, recent)
			}
			if tc.want != "" && (!errors.As(err, &exceeded) || exceeded.Bound != tc.want || exceeded.Cluster != "m1" || len(recent) != 1) {
				t.Errorf("err = %v, recorded %v, want the bound %s", err, recent, tc.want)
			}
			if options.Limit != tc.limit {
				t.Errorf("the last request had the limit %d, want %d", options.Limit, tc.limit)
			}
		})
	}
}

func TestLargePageHoldsSlotUntilDecoded(t *testing.T) {
	for name, object := range map[string]string{
		"in bytes": `{"a":"` + strings.Repeat("x", 16<<10) + `"}`, "in values": strings.TrimSuffix(strings.Repeat("{},", 100), ","),
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewHitTracker("m1", time.Now)
			caches := &MemberBounds{Limits: DefaultLimits(), Hits: tracker, Now: time.Now}
			list := newLister(t, object, tracker)
			var decoding, most atomic.Int32
			var kinds sync.WaitGroup
			for range 20 {
				kinds.Go(func() {
					err := caches.ReadPage(t.Context(), &metav1.ListOptions{Limit: 100}, list, func(runtime.Object) error {
						if now := decoding.Add(1); now > most.Load() {
							most.Store(now)
						}
						// Other requests run at the same time.
						_, _ = list(t.Context(), metav1.ListOptions{Limit: 1})
						decoding.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			kinds.Wait()
			if most.Load() > maxLargeAnswers {
				t.Errorf("%d large pages of one member are decoded at once, want at most %d", most.Load(), maxLargeAnswers)
			}
		})
	}
}
