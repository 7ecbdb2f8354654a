"""Excel workbooks in the layouts of their publishers, with their numbers, written by openpyxl and xlwt."""

import datetime as dt

import openpyxl
import xlwt

WTI, BRENT = "Cushing, OK WTI Spot Price FOB (Dollars per Barrel)", "Europe Brent Spot Price FOB (Dollars per Barrel)"
GASOLINE = "New York Harbor Conventional Gasoline Regular Spot Price FOB (Dollars per Gallon)"
EIA_SHEETS = {
    "Data 1": (
        "Data 1: Crude Oil",
        ("RWTC", "RBRTE"),
        (WTI, BRENT),
        [
            (dt.date(2020, 4, 17), 18.31, 20.04),
            (dt.date(2020, 4, 20), -36.98, 17.36),
            (dt.date(2020, 4, 21), 8.91, 9.12),
            (dt.date(2020, 5, 25), None, 31.32),
        ],
    ),
    "Data 2": (
        "Data 2: Conventional Gasoline",
        ("EER_EPMRU_PF4_Y35NY_DPG",),
        (GASOLINE,),
        [(dt.date(2020, 4, 20), 0.597), (dt.date(2020, 4, 21), 0.471)],
    ),
}
PINK_SHEET = {
    "names": ("Crude oil, Brent", "Coal, South African **", "Gold"),
    "units": ("($/bbl)", "($/mt)", "($/troy oz)"),
    "codes": ("CRUDE_BRENT", "COAL_SAFRICA", "GOLD"),
    "rows": [("1960M01", 1.63, "…", 35.27), ("1960M02", 1.63, "..", 35.27), ("1960M03", 1.63, 37.5, 35.27)],
}


def write_eia(path):
    """EIA's workbook of spot prices, `PET_PRI_SPT_S1_D.xls`."""
    book, dates = xlwt.Workbook(), xlwt.easyxf(num_format_str="mmm dd, yyyy")
    contents = book.add_sheet("Contents")
    for row, text in enumerate(("Workbook Contents", "Spot Prices", "Click worksheet name or tab at bottom for data")):
        contents.write(row, 0, text)
    contents.write(6, 1, "Data 1")
    contents.write(6, 2, "Daily")
    contents.write(6, 3, dt.date(2020, 5, 27), dates)
    for name, (title, keys, descriptions, rows) in EIA_SHEETS.items():
        sheet = book.add_sheet(name)
        for row, cells in enumerate((("Back to Contents", title), ("Sourcekey", *keys), ("Date", *descriptions))):
            for column, cell in enumerate(cells):
                sheet.write(row, column, cell)
        for row, (day, *prices) in enumerate(rows, 3):
            sheet.write(row, 0, day, dates)
            for column, price in enumerate(prices, 1):
                if price is not None:
                    sheet.write(row, column, price)
    book.save(str(path))


def write_pink_sheet(path, *, codes):
    """The World Bank's workbook of monthly prices, as published with a row of codes until 2023, and without since."""
    book = openpyxl.Workbook()
    book.active.title = "AFOSHEET"
    for name in ("Monthly Prices", "Monthly Indices"):
        sheet = book.create_sheet(name)
        sheet.append(["World Bank Commodity Price Data (The Pink Sheet)"])
        sheet.append([f"{name.lower()} in nominal US dollars, 1960 to present"])
        sheet.append(["(monthly series are available only in nominal US dollar terms)"])
        sheet.append(["Updated on June 02, 2026"])
        sheet.append([None, *PINK_SHEET["names"]])
        sheet.append([None, *PINK_SHEET["units"]])
        if codes:
            sheet.append([None, *PINK_SHEET["codes"]])
        for row in PINK_SHEET["rows"]:
            sheet.append(list(row))
    book.create_sheet("Description").append(["Crude oil, Brent: UK Brent 38 API"])
    book.save(path)


def write_sheets(path, sheets):
    """A workbook of plain sheets, name -> rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
