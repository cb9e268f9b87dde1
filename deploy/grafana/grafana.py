"""How a Grafana dashboard is written down: a few kinds of panels, laid out from left to right in 24 columns."""

import json

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def target(number, expr, legend, table):
    query = {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expr, "editorMode": "code"}
    if table:
        return {**query, "format": "table", "instant": True, "range": False}
    return {**query, "legendFormat": legend or "__auto", "instant": False, "range": True}


def panel(kind, title, width, height, unit, targets, options, custom=None, about="", overrides=(), thresholds=None):
    defaults = {
        "unit": unit,
        "custom": custom or {},
        "color": {"mode": "palette-classic"},
        "mappings": [],
        "thresholds": {"mode": "absolute", "steps": thresholds or [{"color": "green", "value": None}]},
    }
    if thresholds:
        defaults["color"] = {"mode": "thresholds"}
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "targets": targets,
        "gridPos": {"w": width, "h": height},
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
    }


def stat(title, expr, unit="none", width=4, about="", bad_above=None):
    """One number; red above bad_above."""
    steps = None
    if bad_above is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": bad_above}]
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "textMode": "auto",
        "orientation": "auto",
    }
    query = {**target(0, expr, "", False), "instant": True, "range": False}
    return panel("stat", title, width, 4, unit, [query], options, about=about, thresholds=steps)


def lines(title, *queries, unit="none", width=12, height=8, stacked=False, about="", interval=None, bars=False):
    """Queries are (expression, legend)."""
    custom = {
        "drawStyle": "bars" if bars else "line",
        "lineWidth": 1,
        "fillOpacity": 70 if bars else 25 if stacked else 8,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    options = {
        "legend": {
            "displayMode": "table",
            "placement": "right",
            "calcs": ["mean", "lastNotNull"],
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    targets = [target(number, expr, legend, False) for number, (expr, legend) in enumerate(queries)]
    made = panel("timeseries", title, width, height, unit, targets, options, custom, about)
    return {**made, "interval": interval} if interval else made


def table(title, *columns, width=24, height=9, about="", hide=()):
    """Columns are (name, unit, expression); all expressions have the same labels, which are the first columns."""
    names = {
        ("Value" if len(columns) == 1 else f"Value #{chr(ord('A') + n)}"): name
        for n, (name, _, _) in enumerate(columns)
    }
    overrides = [
        {"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": unit}]}
        for name, unit, _ in columns
    ]
    made = panel(
        "table",
        title,
        width,
        height,
        "none",
        [target(number, expr, "", True) for number, (_, _, expr) in enumerate(columns)],
        {
            "showHeader": True,
            "cellHeight": "sm",
            "sortBy": [{"displayName": columns[0][0], "desc": True}],
            "footer": {"show": False, "reducer": ["sum"], "fields": ""},
        },
        {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True, "inspect": False},
        about,
        overrides,
    )
    hidden = {name: True for name in ("Time", "__name__", "job", *hide)}
    made["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": names}},
    ]
    return made


def variable(name, label, metric, of):
    """A list to choose several from. "All" also takes series that do not have the label."""
    query = f"label_values({metric}, {of})"
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 1,
        "regex": "",
        "hide": 0,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "options": [],
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def place(rows):
    """Rows are (title, panels); panels flow to the right and wrap."""
    placed, y, number = [], 0, 0
    for title, panels in rows:
        number += 1
        placed.append(
            {
                "type": "row",
                "title": title,
                "id": number,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
            }
        )
        x, y, height = 0, y + 1, 0
        for item in panels:
            number += 1
            w, h = item["gridPos"]["w"], item["gridPos"]["h"]
            if x + w > 24:
                x, y, height = 0, y + height, 0
            placed.append({**item, "id": number, "gridPos": {"x": x, "y": y, "w": w, "h": h}})
            x, height = x + w, max(height, h)
        y += height
    return placed


def dashboard(uid, title, about, since, variables, rows):
    source = {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "regex": "",
        "refresh": 1,
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "current": {},
    }
    links = [
        {
            "type": "dashboards",
            "title": "GPU ledger",
            "tags": ["gpu-ledger"],
            "asDropdown": True,
            "includeVars": True,
            "keepTime": True,
            "targetBlank": False,
            "icon": "external link",
            "tooltip": "",
            "url": "",
        }
    ]
    made = {
        "id": None,
        "uid": uid,
        "title": title,
        "description": about,
        "tags": ["gpu-ledger"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "timezone": "browser",
        "weekStart": "",
        "fiscalYearStartMonth": 0,
        "liveNow": False,
        "timepicker": {},
        "time": {"from": f"now-{since}", "to": "now"},
        "annotations": {"list": []},
        "links": links,
        "templating": {"list": [source, *variables]},
        "panels": place(rows),
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
