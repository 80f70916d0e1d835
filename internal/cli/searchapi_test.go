package cli

import (
	"fmt"
	"net/http"
)

// Responses of karmada-search to all queries.
const (
	foundPod  = `{"cluster":"east","apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web-1","creationTimestamp":"2020-01-01T00:00:00Z","staleSince":"2020-01-02T00:00:00Z","matches":[{"field":"kind","value":"Pod"},{"field":"image","value":"nginx:1.19"}]}`
	foundNode = `{"cluster":"west","apiVersion":"v1","kind":"Node","name":"n1"}`
	foundWeb  = `{"cluster":"east","apiVersion":"apps/v1","kind":"Deployment","namespace":"shop","name":"web"}`
)

// serveSearch answers the paths of karmada-search. It is installed if the file karmada/search
// exists, and does not respond if the file karmada/search-down exists. Queries are recorded in the
// file requests.
func (f *fakeAPI) serveSearch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case !f.hasFile("karmada/search"):
		replyError(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	case f.hasFile("karmada/search-down"):
		replyError(w, http.StatusServiceUnavailable, "ServiceUnavailable", "service unavailable")
		return
	case query.Get("q") == "refused-by-server":
		replyError(w, http.StatusBadRequest, "BadRequest", "query, column 3: the server says no")
		return
	}
	f.recordRequest(fmt.Sprintf("search q=%s limit=%s continue=%s watch=%s", query.Get("q"), query.Get("limit"), query.Get("continue"), query.Get("watch")))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Warning", `299 - "cluster \"south\" is not reachable"`)
	const list = `{"kind":"SearchResultList","apiVersion":"search.karmada.io/v1alpha1","metadata":{"continue":%q},"items":[%s]}`
	switch {
	case query.Get("watch") != "":
		fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", foundPod)
		fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", foundPod)
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,"reason":"Expired","message":"too old"}}`)
	case query.Get("continue") == "two":
		fmt.Fprintf(w, list, "", foundWeb)
	default:
		fmt.Fprintf(w, list, "two", foundPod+","+foundNode)
	}
}
