package search

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/console"
)

// list prints the matches, up to the limit.
func (o *options) list(ctx context.Context) error {
	results, hasMore, err := o.readResults(ctx)
	if err != nil {
		return err
	}
	switch {
	case hasMore:
		o.Program.Messagef("More objects match: --all shows all of them, --limit sets the maximum.")
	case len(results) == 0 && o.format.IsTable():
		o.Program.Messagef("No objects found")
		return nil
	}
	return o.print(results)
}

// readResults returns the matches up to the limit, and whether there are more.
func (o *options) readResults(ctx context.Context) (results []searchv1alpha1.SearchResult, hasMore bool, err error) {
	client, err := o.client(false)
	if err != nil {
		return nil, false, err
	}
	results = []searchv1alpha1.SearchResult{}
	for token := ""; ; {
		size := maxPage
		if !o.all {
			size = min(maxPage, o.limit-len(results))
		}
		page, err := o.readPage(ctx, client, size, token)
		if err != nil {
			return nil, false, err
		}
		results = append(results, page.Items...)
		switch {
		case page.Continue == "":
			return results, false, nil
		case !o.all && len(results) >= o.limit:
			return results, true, nil
		case page.Continue == token:
			return nil, false, fmt.Errorf("%s returned the same page twice", addonName)
		}
		token = page.Continue
	}
}

func (o *options) print(results []searchv1alpha1.SearchResult) error {
	now := time.Now()
	header := tableHeader(o.format == console.Wide)
	output := console.Output{ColumnGap: 3, Header: header}
	if o.format.IsTable() {
		output.Rows = make([][]string, 0, len(results))
		for i := range results {
			output.Rows = append(output.Rows, newRow(&results[i], now, o.format == console.Wide))
		}
		if o.format != console.Wide {
			truncateLast(append([][]string{header}, output.Rows...), o.terminalWidth(), output.ColumnGap)
		}
	}
	for i := range results {
		output.Names = append(output.Names, uniqueName(&results[i]))
	}
	output.Object = searchv1alpha1.SearchResultList{
		TypeMeta: metav1.TypeMeta{APIVersion: searchv1alpha1.GroupVersion.String(), Kind: searchv1alpha1.SearchResultListKind},
		Items:    results,
	}
	return o.format.Print(o.Program.Out, output)
}
