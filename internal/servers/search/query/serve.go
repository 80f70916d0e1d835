package query

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/index"
)

// Parameters of search/query.
const (
	parameterQuery    = "q"
	parameterLimit    = "limit"
	parameterContinue = "continue"
	parameterWatch    = "watch"
	parameterTimeout  = "timeoutSeconds"
)

// Limits for pages.
const (
	// DefaultLimit is the number of objects in a page if the request sets no limit.
	DefaultLimit = 500
	// MaxLimit is the maximum number of objects in a page. Larger limits are reduced to it.
	MaxLimit = 5000
)

// parameters are the parsed parameters of search/query.
type parameters struct {
	query *searchquery.Query
	limit int
	after index.Cursor
	watch bool
	// timeout is the time after which a watch ends. Zero means that only the client ends it.
	timeout time.Duration
	asTable bool
}

// ServeQuery serves the objects that match the query in the parameter q, as a list, as a Table if the
// client accepts one, or as a watch.
func (h *Handler) ServeQuery(w http.ResponseWriter, req *http.Request, caller user.Info) {
	p, err := parseParameters(req.URL.Query())
	if err != nil {
		writeError(req.Context(), w, err)
		return
	}
	p.asTable = acceptsTable(req.Header.Values("Accept"))
	if p.watch {
		h.serveWatch(w, req, p, caller)
		return
	}
	h.serveList(w, req, p, caller)
}

func parseParameters(values url.Values) (p parameters, err error) {
	if p.query, err = searchquery.Parse(values.Get(parameterQuery)); err != nil {
		return p, err
	}
	if p.limit, err = parseLimit(values.Get(parameterLimit)); err != nil {
		return p, err
	}
	if text := values.Get(parameterWatch); text != "" {
		if p.watch, err = strconv.ParseBool(text); err != nil {
			return p, invalidParameter(parameterWatch, text, "use true or false")
		}
	}
	if text := values.Get(parameterTimeout); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return p, invalidParameter(parameterTimeout, text, "use a number of seconds, such as 60")
		}
		p.timeout = time.Duration(seconds) * time.Second
	}
	token := values.Get(parameterContinue)
	if token != "" && p.watch {
		return p, invalidParameter(parameterContinue, token, "omit it, because a watch has no pages")
	}
	p.after, err = parseToken(token, p.query)
	return p, err
}

func parseLimit(text string) (int, error) {
	if text == "" {
		return DefaultLimit, nil
	}
	limit, err := strconv.Atoi(text)
	switch {
	case err != nil || limit < 0:
		return 0, invalidParameter(parameterLimit, text, fmt.Sprintf("use a number from 1 to %d", MaxLimit))
	case limit == 0:
		return DefaultLimit, nil
	}
	return min(limit, MaxLimit), nil
}

// maxQuoted is the length to which errors truncate parameters.
const maxQuoted = 60

func invalidParameter(name, value, remedy string) error {
	if len(value) > maxQuoted {
		value = value[:maxQuoted] + "…"
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the parameter %s=%q is invalid: %s", name, value, remedy))
}
