# SPDX-License-Identifier: Apache-2.0
"""How a Grafana dashboard is written down: a few kinds of panels, laid out from left to right in 24 columns."""

import json

SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def target(number, expr, legend, table):
    query = {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expr, "editorMode": "code"}
    if table:
        return {**query, "format": "table", "instant": True, "range": False}
    return {**query, "legendFormat": legend or "__auto", "instant": False, "range": True}


def panel(kind, title, about, width, height, unit, targets, options, custom=None, overrides=(), thresholds=None, links=()):
    defaults = {
        "unit": unit,
        "custom": custom or {},
        "color": {"mode": "palette-classic"},
        "mappings": [],
        "thresholds": {"mode": "absolute", "steps": thresholds or [{"color": "green", "value": None}]},
    }
    if links:
        defaults["links"] = list(links)
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


def stat(title, about, expr, unit="none", width=4, bad_above=None):
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
    return panel("stat", title, about, width, 4, unit, [query], options, thresholds=steps)


def lines(title, about, *queries, unit="none", width=12, height=8, stacked=False, interval=None, bars=False, links=()):
    """Queries are (expression, legend); links open where one clicks on a line."""
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
    made = panel("timeseries", title, about, width, height, unit, targets, options, custom, links=links)
    return {**made, "interval": interval} if interval else made


def table(title, about, *columns, width=24, height=9, links=None):
    """Columns are (name, unit, expression); all expressions have the same labels, which are the first columns. Links are
    {label: link}: they open where one clicks on a value of that column."""
    names = ["Value" if len(columns) == 1 else f"Value #{chr(ord('A') + number)}" for number in range(len(columns))]
    # A column's name stands in displayName, where Grafana replaces variables.
    overrides = [
        override(value, {"unit": unit, "displayName": name}) for value, (name, unit, _) in zip(names, columns)
    ]
    overrides += [override(label, {"links": [link]}) for label, link in (links or {}).items()]
    made = panel(
        "table",
        title,
        about,
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
        overrides,
    )
    hidden = {name: True for name in ("Time", "__name__")}
    made["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": hidden, "indexByName": {}, "renameByName": {}}},
    ]
    return made


def override(column, properties):
    values = [{"id": name, "value": value} for name, value in properties.items()]
    return {"matcher": {"id": "byName", "options": column}, "properties": values}


def variable(name, label, metric, of, single=False, every=".*", hide=False):
    """A list to choose from: several, or one only. "All" (every) also takes series that do not have the label."""
    query = f"label_values({metric}, {of})"
    several = {"includeAll": True, "multi": True, "allValue": every,
               "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    one = {"includeAll": False, "multi": False, "allValue": None, "current": {}}
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
        "hide": 2 if hide else 0,
        "options": [],
        **(one if single else several),
    }


def data_link(title, url):
    """Opens the same time in another dashboard."""
    return {"title": title, "url": f"{url}&${{__url_time_range}}", "targetBlank": False}


def header_link(title, url):
    return {
        "type": "link",
        "title": title,
        "url": url,
        "keepTime": True,
        "includeVars": False,
        "targetBlank": False,
        "asDropdown": False,
        "icon": "dashboard",
        "tags": [],
        "tooltip": "",
    }


def annotation(name, expr, colour, title, text, value_is_time=False):
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": colour,
        "expr": expr,
        "step": "60s",
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": "",
        "useValueForTime": value_is_time,
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


def dashboard(uid, title, about, since, variables, annotations, links, rows):
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
        "annotations": {"list": list(annotations)},
        "links": list(links),
        "templating": {"list": [source, *variables]},
        "panels": place(rows),
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
